package messaging

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"
)

// What the client library reads of headers; a test measures it, so that an upgrade which moves a limit is noticed.
const (
	maxNesting = 32   // tables and arrays around a value, beside the headers' own table
	maxEntries = 8192 // of one table or array

	unsignedLong = 'L' // some clients write it and the broker takes it, but the library does not know it
)

// headersOf finds the headers in a header frame: from where to where their entries stand. Both are 0 when there are none, or the
// frame is not made as AMQP says.
func headersOf(frame []byte) (from, to int) {
	const (
		flagsAt            = frameStart + 2 + 2 + 8 // behind class, weight and the body's size
		hasContentType     = 1 << 15
		hasContentEncoding = 1 << 14
		hasHeaders         = 1 << 13
	)
	at, end := flagsAt+2, len(frame)-1
	if end < at {
		return 0, 0
	}
	flags := binary.BigEndian.Uint16(frame[flagsAt:])
	if flags&hasHeaders == 0 {
		return 0, 0
	}
	for _, before := range []uint16{hasContentType, hasContentEncoding} {
		if flags&before == 0 {
			continue
		}
		if at >= end {
			return 0, 0
		}
		at += 1 + int(frame[at])
	}
	if end-at < 4 {
		return 0, 0
	}
	size := int(binary.BigEndian.Uint32(frame[at:]))
	if at += 4; size > end-at {
		return 0, 0
	}
	return at, at + size
}

// entryOf measures the entry that a table's content begins with: its name and its value. ok is false when the library could not
// tell where it ends.
func entryOf(table []byte) (name, value int, ok bool) {
	name = 1 + int(table[0])
	if len(table) <= name {
		return 0, 0, false
	}
	value, ok = extent(table[name:])
	return name, value, ok
}

// extent is how many bytes the value takes that b begins with, its type included.
func extent(b []byte) (int, bool) {
	size := 1
	switch b[0] {
	case 'V':
	case 't', 'b', 'B':
		size += 1
	case 's', 'u':
		size += 2
	case 'I', 'i', 'f':
		size += 4
	case 'D':
		size += 5
	case 'l', 'd', 'T', unsignedLong:
		size += 8
	case 'S', 'x', 'A', 'F':
		if size += 4; len(b) >= size {
			size += int(binary.BigEndian.Uint32(b[1:]))
		}
	default:
		return 0, false
	}
	return size, size <= len(b)
}

// readableTable says whether the library reads a table with this content, inside so many others.
func readableTable(content []byte, around int) bool {
	for n := 0; len(content) > 0; n++ {
		name, value, ok := entryOf(content)
		if !ok || n == maxEntries || !readableValue(content[name:name+value], around) {
			return false
		}
		content = content[name+value:]
	}
	return true
}

// readableValue says it of a value.
func readableValue(value []byte, around int) bool {
	switch value[0] {
	case unsignedLong:
		return false
	case 'F':
		return around < maxNesting && readableTable(value[5:], around+1)
	case 'A':
		return around < maxNesting && readableArray(value[5:], around+1)
	}
	return true
}

func readableArray(content []byte, around int) bool {
	for n := 0; len(content) > 0; n++ {
		size, ok := extent(content)
		if !ok || n == maxEntries || !readableValue(content[:size], around) {
			return false
		}
		content = content[size:]
	}
	return true
}

// forged says whether a table that can be read holds the header which only the guard writes. A client's would have a good message
// quarantined, with words of his own for the reason.
func forged(content []byte) bool {
	for len(content) > 0 {
		name, value, _ := entryOf(content)
		if string(content[1:name]) == HeaderUnreadable {
			return true
		}
		content = content[name+value:]
	}
	return false
}

// maxUnreadable is how long the header may be that names the others, in bytes.
const maxUnreadable = 512

// mend is a header frame with what the library can read of its headers, at most limit bytes long. What is taken out is named in
// HeaderUnreadable, but for one that was there before.
func mend(frame []byte, limit int) []byte {
	from, to := headersOf(frame)
	var kept [][]byte
	var gone []string
	size := 0
	for content := frame[from:to]; len(content) > 0; {
		name, value, ok := entryOf(content)
		switch {
		case !ok: // nor can anything be read that stands behind it
			gone = append(gone, entryName(content))
			content = nil
			continue
		case len(kept) == maxEntries-1 || !readableValue(content[name:name+value], 0):
			gone = append(gone, entryName(content))
		case entryName(content) != HeaderUnreadable: // ours is the one to be believed
			kept = append(kept, content[:name+value])
			size += name + value
		}
		content = content[name+value:]
	}
	// Those that make it too long: the largest go, until the rest leaves others room to add to it.
	if room := limit - (len(frame) - (to - from)) - maxUnreadable - 64; size > room {
		bySize := slices.Clone(kept)
		slices.SortStableFunc(bySize, func(a, b []byte) int { return len(b) - len(a) })
		for size > min(room, keptHeaders) {
			gone = append(gone, entryName(bySize[0]))
			size -= len(bySize[0])
			bySize = bySize[1:]
		}
		kept = bySize
	}

	mended := make([]byte, 0, len(frame)-(to-from)+size+maxUnreadable+64)
	mended = append(mended, frame[:from]...)
	for _, entry := range kept {
		mended = append(mended, entry...)
	}
	if len(gone) > 0 {
		names := plainText(strings.Join(gone, ", "), maxUnreadable)
		mended = append(mended, byte(len(HeaderUnreadable)))
		mended = append(mended, HeaderUnreadable+"S"...)
		mended = binary.BigEndian.AppendUint32(mended, uint32(len(names)))
		mended = append(mended, names...)
	}
	binary.BigEndian.PutUint32(mended[from-4:], uint32(len(mended)-from))
	mended = append(mended, frame[to:]...)
	binary.BigEndian.PutUint32(mended[3:], uint32(len(mended)-frameOverhead))
	return mended
}

// entryName is the name of the entry that a table's content begins with, or as much of it as there is.
func entryName(table []byte) string {
	return string(bytes.TrimSpace(table[1:min(len(table), 1+int(table[0]))]))
}
