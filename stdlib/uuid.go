package stdlib

import (
	"fmt"

	"github.com/google/uuid"

	"github.com/weir-run/weir/scripting"
)

func uuidModule() *scripting.Module {
	s := text("s", "The UUID, with or without dashes, braces or the prefix urn:uuid:.")
	made := scripting.Result{Kind: scripting.KindString, Doc: "The UUID, in lower case with dashes.", Fails: true}
	named := func(name, doc string, version func(uuid.UUID, []byte) uuid.UUID, want string) scripting.Function {
		return scripting.Function{Name: name, Doc: doc, Result: made,
			Params: []scripting.Param{text("namespace", "A UUID, such as uuid.dns or one that you chose."), text("name", "The name.")},
			Fn: func(a []scripting.Value) (scripting.Value, error) {
				ns, err := parseUUID(a[0].(string))
				if err != nil {
					return nil, err
				}
				return version(ns, []byte(a[1].(string))).String(), nil
			},
			Examples: []scripting.FunctionExample{
				ex(want, uuid.NameSpaceDNS.String(), "www.example.com"),
				{Args: []scripting.Value{"dns", "x"}, Err: "cannot parse UUID"},
			}}
	}
	return &scripting.Module{
		Name: "uuid",
		Doc: "UUIDs as defined in RFC 9562. Results are deterministic, so the module creates only UUIDs that are derived from names: " +
			"two hosts get the same UUID for the same name.",
		Consts: []scripting.Const{
			{Name: "dns", Value: uuid.NameSpaceDNS.String(), Doc: "The namespace of domain names."},
			{Name: "url", Value: uuid.NameSpaceURL.String(), Doc: "The namespace of URLs."},
		},
		Funcs: []scripting.Function{
			named("v5", "Creates a UUID from a name, with SHA-1 (version 5).", uuid.NewSHA1, "2ed6657d-e927-568b-95e1-2665a8aea6a2"),
			named("v3", "Creates a UUID from a name, with MD5 (version 3), for compatibility with existing data.", uuid.NewMD5, "5df41881-3aed-3515-88a7-2f4a814cf09e"),
			{
				Name: "parse", Doc: "Parses a UUID.", Params: []scripting.Param{s}, Result: made,
				Fn: func(a []scripting.Value) (scripting.Value, error) {
					u, err := parseUUID(a[0].(string))
					if err != nil {
						return nil, err
					}
					return u.String(), nil
				},
				Examples: []scripting.FunctionExample{
					ex("0192c5d0-0b2c-7000-8000-000000000001", "{0192C5D0-0B2C-7000-8000-000000000001}"),
					{Args: []scripting.Value{"42"}, Err: "cannot parse UUID"},
				},
			},
			{
				Name: "is_valid", Doc: "Reports whether a string is a UUID.", Params: []scripting.Param{s},
				Result: scripting.Result{Kind: scripting.KindBool, Doc: "Whether it is a UUID."},
				Fn: func(a []scripting.Value) (scripting.Value, error) {
					_, err := parseUUID(a[0].(string))
					return err == nil, nil
				},
				Examples: []scripting.FunctionExample{ex(true, "5df41881-3aed-3515-88a7-2f4a814cf09e"), ex(false, "users")},
			},
			{
				Name: "version", Doc: "Returns the version of a UUID.", Params: []scripting.Param{s},
				Result: scripting.Result{Kind: scripting.KindInt, Doc: "1 to 8.", Fails: true},
				Fn: func(a []scripting.Value) (scripting.Value, error) {
					u, err := parseUUID(a[0].(string))
					if err != nil {
						return nil, err
					}
					return int64(u.Version()), nil
				},
				Examples: []scripting.FunctionExample{ex(int64(5), "2ed6657d-e927-568b-95e1-2665a8aea6a2"), ex(int64(7), "0192c5d0-0b2c-7000-8000-000000000001")},
			},
			{
				Name: "time", Doc: "Returns the time in a UUID of version 1, 2, 6 or 7.", Params: []scripting.Param{s},
				Result: scripting.Result{Kind: scripting.KindInt, Doc: "Unix milliseconds.", Fails: true},
				Fn: func(a []scripting.Value) (scripting.Value, error) {
					u, err := parseUUID(a[0].(string))
					if err != nil {
						return nil, err
					}
					switch u.Version() {
					case 1, 2, 6, 7:
						sec, ns := u.Time().UnixTime()
						return sec*1000 + ns/1_000_000, nil
					}
					return nil, fmt.Errorf("cannot read a time: a UUID of version %d has none", u.Version())
				},
				Examples: []scripting.FunctionExample{
					ex(int64(1645557742000), "017f22e2-79b0-7cc3-98c4-dc0c0c07398f"),
					{Args: []scripting.Value{"2ed6657d-e927-568b-95e1-2665a8aea6a2"}, Err: "has none"},
				},
			},
		},
	}
}

func parseUUID(s string) (uuid.UUID, error) {
	u, err := uuid.Parse(s)
	if err != nil {
		return u, fmt.Errorf("cannot parse UUID %q: it must have 32 hexadecimal digits", truncate(s, 50, "…"))
	}
	return u, nil
}
