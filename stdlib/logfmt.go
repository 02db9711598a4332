package stdlib

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/weir-run/weir/scripting"
)

func logfmtModule() *scripting.Module {
	return &scripting.Module{
		Name: "logfmt",
		Doc:  "Lines such as level=warn msg=\"disk full\". For two or three fields of many lines, batch:logfmt is cheaper.",
		Funcs: []scripting.Function{
			{
				Name:   "decode",
				Doc:    "Decodes one line. A key alone has an empty value; of a key that is there twice the first counts. Values are text.",
				Params: []scripting.Param{text("s", "The line.")},
				Result: scripting.Result{Kind: scripting.KindMap, Doc: "The values by key, in their order.", Fails: true},
				Fn:     func(a []scripting.Value) (scripting.Value, error) { return decodeLogfmt(a[0].(string)) },
				Examples: []scripting.FunctionExample{
					ex(mapOf("level", "warn", "msg", `disk "a" full`, "retry", ""), `level=warn msg="disk \"a\" full" retry`),
					ex(mapOf(), " "),
					{Args: []scripting.Value{`msg="disk`}, Err: "a quote without its end"},
					{Args: []scripting.Value{`=warn`}, Err: "a value without a key"},
				},
			},
			{
				Name: "encode", Doc: "Encodes values as a line, in their order. What needs quotes gets them.",
				Params: []scripting.Param{{Name: "values", Kind: scripting.KindMap, Doc: "Text, numbers, booleans and null by key."}},
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
		for i < len(s) && s[i] <= ' ' {
			i++
		}
		if i == len(s) {
			return m, nil
		}
		from := i
		for i < len(s) && s[i] > ' ' && s[i] != '=' && s[i] != '"' {
			i++
		}
		key, value := s[from:i], ""
		switch {
		case key == "":
			return nil, fmt.Errorf("cannot decode logfmt: a value without a key at byte %d", from+1)
		case i < len(s) && s[i] == '"':
			return nil, fmt.Errorf("cannot decode logfmt: a quote in a key at byte %d", i+1)
		case i < len(s) && s[i] == '=':
			i++
			var err error
			if value, i, err = logfmtValue(s, i); err != nil {
				return nil, fmt.Errorf("cannot decode logfmt: %w", err)
			}
		}
		if _, there := m.Get(key); !there {
			if m.Len() >= maxParts {
				return nil, fmt.Errorf("cannot decode logfmt: there are more than %d keys", maxParts)
			}
			m.Set(key, value)
		}
	}
}

// logfmtValue reads the value that begins at i.
func logfmtValue(s string, i int) (value string, end int, err error) {
	if i == len(s) || s[i] != '"' {
		for end = i; end < len(s) && s[end] > ' '; end++ {
		}
		return s[i:end], end, nil
	}
	for end = i + 1; end < len(s) && s[end] != '"'; end++ {
		if s[end] == '\\' {
			end++
		}
	}
	if end >= len(s) {
		return "", 0, fmt.Errorf("a quote without its end at byte %d", i+1)
	}
	end++
	if strings.IndexByte(s[i:end], '\\') < 0 {
		return s[i+1 : end-1], end, nil
	}
	// JSON has \/ beside what Go has, and no raw line feeds need escaping here.
	value, err = strconv.Unquote(strings.NewReplacer("\n", `\n`, `\\`, `\\`, `\/`, "/").Replace(s[i:end]))
	if err != nil {
		return "", 0, fmt.Errorf("an escape that is none, in the value at byte %d", i+1)
	}
	return value, end, nil
}

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
			s = strconv.Quote(s)
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
