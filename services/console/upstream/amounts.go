package upstream

import (
	"bytes"
	"errors"
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// QuoteAmounts writes each number that is the value of a member called …Minor as a text, and leaves all else as it is. A page's
// JSON.parse would read amounts as floats, which is wrong from 2⁵³ on; no amount passes through a float, not here either.
func QuoteAmounts(document []byte) ([]byte, error) {
	var out bytes.Buffer
	out.Grow(len(document) + len(document)/16)
	options := []jsontext.Options{jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)}
	in := jsontext.NewDecoder(bytes.NewReader(document), options...)
	to := jsontext.NewEncoder(&out, options...)
	amount := false
	for {
		token, err := in.ReadToken()
		if errors.Is(err, io.EOF) {
			return bytes.TrimRight(out.Bytes(), "\n"), nil
		}
		if err != nil {
			return nil, err
		}
		if amount && token.Kind() == '0' {
			token = jsontext.String(token.String())
		}
		kind, n := in.StackIndex(in.StackDepth())
		amount = kind == '{' && n%2 == 1 && token.Kind() == '"' && strings.HasSuffix(token.String(), "Minor")
		if err := to.WriteToken(token); err != nil {
			return nil, err
		}
	}
}
