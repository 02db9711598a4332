package stdlib

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/weir-run/weir/engine/scan"
	"github.com/weir-run/weir/scripting"
)

func logfmtModule() *scripting.Module {
	return &scripting.Module{
		Name: "logfmt",
		Doc:  "Lines such as level=warn msg=\"disk full\". To read two or three fields of many lines, batch:logfmt is cheaper.",
		Funcs: []scripting.Function{
			{
				Name:   "decode",
				Doc:    "Decodes one line. A key without a value has an empty value; for a repeated key, the first value is used. Values are strings.",
				Params: []scripting.Param{text("s", "The line.")},
				Result: scripting.Result{Kind: scripting.KindMap, Doc: "The values by key, in their original order.", Fails: true},
				Fn:     func(a []scripting.Value) (scripting.Value, error) { return decodeLogfmt(a[0].(string)) },
				Examples: []scripting.FunctionExample{
					ex(mapOf("level", "warn", "msg", `disk "a" full`, "retry", ""), `level=warn msg="disk \"a\" full" retry`),
					ex(mapOf(), " "),
					{Args: []scripting.Value{`msg="disk`}, Err: "unterminated quote"},
					{Args: []scripting.Value{`=warn`}, Err: "a value without a key"},
				},
			},
			{
				Name: "encode", Doc: "Encodes values as a line, in their order. Values are quoted where necessary.",
				Params: []scripting.Param{{Name: "values", Kind: scripting.KindMap, Doc: "Strings, numbers, booleans and null, by key."}},
				Result: scripting.Result{Kind: scripting.KindString, Doc: "The line.", Fails: true},
				Fn:     func(a []scripting.Value) (scripting.Value, error) { return encodeLogfmt(a[0].(*scripting.Map)) },
				Examples: []scripting.FunctionExample{
					ex(`level=warn msg="disk full" n=3 empty=""`, mapOf("level", "warn", "msg", "disk full", "n", int64(3), "empty", "")),
					{Args: []scripting.Value{mapOf("a b", "c")}, Err: "cannot encode key"},
					{Args: []scripting.Value{mapOf("a", list())}, Err: "cannot encode a"},
				},
			},
		},
	}
}

func decodeLogfmt(s string) (scripting.Value, error) {
	m := scripting.NewMap()
	for i := 0; ; {
		key, value, marks, at, end := scan.NextPair(s, i)
		if at == len(s) {
			return m, nil
		}
		inValue := at + len(key) + 2
		switch {
		case key == "":
			return nil, fmt.Errorf("cannot decode logfmt: a value without a key at byte %d", at+1)
		case strings.Contains(key, `"`):
			return nil, fmt.Errorf("cannot decode logfmt: a quote in a key at byte %d", at+strings.IndexByte(key, '"')+1)
		case marks&scan.Open != 0:
			return nil, fmt.Errorf("cannot decode logfmt: unterminated quote at byte %d", inValue)
		case marks&scan.Escaped != 0:
			var err error
			if value, err = strconv.Unquote(`"` + logfmtEscapes.Replace(value) + `"`); err != nil {
				return nil, fmt.Errorf("cannot decode logfmt: invalid escape in the value at byte %d", inValue)
			}
		}
		if _, there := m.Get(key); !there {
			if m.Len() >= maxParts {
				return nil, fmt.Errorf("cannot decode logfmt: there are more than %d keys", maxParts)
			}
			m.Set(key, value)
		}
		i = end
	}
}

// logfmtEscapes converts a value so that Go can unquote it: JSON has \/ in
// addition to Go's escapes, and logfmt allows line feeds in a value.
var logfmtEscapes = strings.NewReplacer("\n", `\n`, `\\`, `\\`, `\/`, "/")

func encodeLogfmt(m *scripting.Map) (scripting.Value, error) {
	var b strings.Builder
	for _, k := range m.Keys() {
		if k == "" || strings.ContainsFunc(k, func(r rune) bool { return r <= ' ' || r == '=' || r == '"' || r == utf8.RuneError }) {
			return nil, fmt.Errorf("cannot encode key %q: a key has no spaces, quotes or equals signs", truncate(k, 40, "…"))
		}
		v, _ := m.Get(k)
		s, err := plainText(v)
		if err != nil {
			return nil, fmt.Errorf("cannot encode %s: %w", k, err)
		}
		if v == scripting.Null {
			s = "null"
		} else if s == "" || strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r == '=' || r == '"' || r == '\\' || r == utf8.RuneError }) {
			s = quoteLogfmt(s)
		}
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(k + "=" + s)
		if b.Len() > scripting.MaxString {
			return nil, errLong("encode")
		}
	}
	return b.String(), nil
}

// quoteLogfmt quotes a value. It uses the escapes of JSON, which decoders of
// logfmt support; Go has more. Bytes that are not valid UTF-8 become U+FFFD.
//
// Format: https://pkg.go.dev/github.com/go-logfmt/logfmt
func quoteLogfmt(s string) string {
	b := make([]byte, 0, len(s)+2)
	b = append(b, '"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case r == '\n':
			b = append(b, `\n`...)
		case r == '\r':
			b = append(b, `\r`...)
		case r == '\t':
			b = append(b, `\t`...)
		case r < ' ' || r == utf8.RuneError:
			b = fmt.Appendf(b, `\u%04x`, r)
		default:
			b = utf8.AppendRune(b, r)
		}
	}
	return string(append(b, '"'))
}
