package messaging

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// entries makes the content of a table, of whatever shape the bytes choose, and says whether it stays within the library's limits.
func (s *source) entries(around int) (table []byte, within bool) {
	within = true
	for range s.choose(5) {
		value, ok := s.wireValue(around)
		table = append(table, header(string(s.take(s.choose(4))), value...)...)
		within = within && ok
	}
	return table, within
}

// plainKinds are the values of a fixed size.
var plainKinds = map[byte]int{'V': 0, 't': 1, 'b': 1, 'B': 1, 's': 2, 'u': 2, 'I': 4, 'i': 4, 'f': 4, 'D': 5, 'l': 8, 'd': 8, 'T': 8}

func (s *source) wireValue(around int) (value []byte, within bool) {
	switch s.choose(6) {
	case 0:
		kind := "VtbBsuIifDldT"[s.choose(13)]
		return append([]byte{kind}, make([]byte, plainKinds[kind])...), true
	case 1:
		return sized("Sx"[s.choose(2)], s.take(s.choose(64))), true
	case 2:
		table, within := s.entries(around + 1)
		return sized('F', table), within && around < maxNesting
	case 3:
		var array []byte
		within = around < maxNesting
		for range s.choose(4) {
			value, ok := s.wireValue(around + 1)
			array = append(array, value...)
			within = within && ok
		}
		return sized('A', array), within
	case 4:
		depth := s.choose(40)
		return nested([]string{"F", "A", "AF"}[s.choose(3)], depth), around+depth <= maxNesting
	}
	n := maxEntries - 1 + s.choose(3)
	return sized('A', bytes.Repeat([]byte{'V'}, n)), around < maxNesting && n <= maxEntries
}

// Headers within the limits pass as they came. All others, and any garbage in their place, the library can read.
func FuzzGuard(f *testing.F) {
	f.Add([]byte{}, []byte{})
	f.Add([]byte{3, 4, 35, 0, 0, 0, 1}, nested("F", 34))
	f.Add([]byte{4, 5, 2, 2, 2, 2, 2, 2, 3, 1, 60}, header("n", 'S', 0, 0, 9, 9))
	f.Add([]byte{1, 2, 2, 1, 2, 2, 4, 31}, bytes.Repeat(header("n", nested("A", 33)...), 9))
	var l *library
	f.Fuzz(func(t *testing.T, choices, garbage []byte) {
		if l == nil || l.conn.IsClosed() {
			var err error
			if l, err = openLibrary(guarded); err != nil {
				t.Fatal(err)
			}
		}
		s := &source{choices}
		table, within := s.entries(0)
		frames := [][]byte{headerFrame(table), headerFrame(garbage)}
		for i, whole := range frames {
			if len(whole) > frameHeld {
				continue
			}
			d, err := l.get(whole)
			if err != nil || string(d.Body) != scriptedBody || d.MessageId != "id" {
				t.Fatalf("the library does not read what became of %x: %+v, error %v", whole, d, err)
			}
			_, touched := d.Headers[HeaderUnreadable]
			if i == 0 && touched == (within && len(whole) <= frameProposed) {
				t.Fatalf("headers within the limits: %v; touched: %v", within, d.Headers)
			}
		}
		// As a stream, with garbage that is no frame at all behind, parted anywhere.
		data := bytes.Join([][]byte{frames[0], ordinary(1, 3), frames[0], garbage}, nil)
		var first []byte
		for how, read := range readers(data, rand.New(rand.NewPCG(uint64(len(data)), 0))) {
			got := read()
			if first == nil {
				first = got
			}
			if !bytes.Equal(got, first) || within && len(frames[0]) <= frameProposed && len(garbage) == 0 && !bytes.Equal(got, data) {
				t.Fatalf("%s: %x became %x", how, data, got)
			}
		}
	})
}
