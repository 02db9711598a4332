package stdlib

import (
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/weir-run/weir/scripting"
)

func base64Module() *scripting.Module {
	url := scripting.Param{Name: "url", Kind: scripting.KindBool, Doc: "Use the URL-safe alphabet, with - and _ instead of + and /, and without padding.", Optional: true}
	return &scripting.Module{
		Name: "base64",
		Doc:  "Base64 as defined in RFC 4648.",
		Funcs: []scripting.Function{
			{
				Name: "encode", Doc: "Encodes bytes.", Params: []scripting.Param{text("s", "The bytes."), url},
				Result: scripting.Result{Kind: scripting.KindString, Doc: "The text.", Fails: true},
				Fn: func(a []scripting.Value) (scripting.Value, error) {
					enc := base64.StdEncoding
					if a[1] == true {
						enc = base64.RawURLEncoding
					}
					s := a[0].(string)
					if enc.EncodedLen(len(s)) > scripting.MaxString {
						return nil, errLong("encode")
					}
					return enc.EncodeToString([]byte(s)), nil
				},
				Examples: []scripting.FunctionExample{ex("d2Vpcg==", "weir"), ex("_-8", "\xff\xef", true), ex("", "")},
			},
			{
				Name: "decode", Doc: "Decodes both alphabets, with or without padding. Line breaks are ignored.",
				Params: []scripting.Param{text("s", "The text.")},
				Result: scripting.Result{Kind: scripting.KindString, Doc: "The bytes.", Fails: true},
				Fn:     func(a []scripting.Value) (scripting.Value, error) { return decodeBase64(a[0].(string)) },
				Examples: []scripting.FunctionExample{
					ex("weir", "d2Vpcg=="), ex("weir", "d2Vpcg"), ex("\xff\xef", "_-8"),
					{Args: []scripting.Value{"d2V!"}, Err: "cannot decode base64: illegal base64 data at input byte 3"},
				},
			},
		},
	}
}

var standardAlphabet = strings.NewReplacer("-", "+", "_", "/")

func decodeBase64(s string) (scripting.Value, error) {
	if strings.ContainsAny(s, "-_") {
		s = standardAlphabet.Replace(s)
	}
	out, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(s, "=\r\n"))
	if err != nil {
		return nil, fmt.Errorf("cannot decode base64: %w", err)
	}
	return string(out), nil
}
