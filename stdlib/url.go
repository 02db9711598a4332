package stdlib

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/weir-run/weir/scripting"
)

// urlModule implements RFC 3986 like package net/url.
func urlModule() *scripting.Module {
	s := text("s", "The URL.")
	parts := []scripting.Param{
		{Name: "scheme", Kind: scripting.KindString, Optional: true, Doc: "The scheme in lower case, such as https."},
		{Name: "user", Kind: scripting.KindString, Optional: true, Doc: "The user."},
		{Name: "password", Kind: scripting.KindString, Optional: true, Doc: "The password."},
		{Name: "host", Kind: scripting.KindString, Optional: true, Doc: "The name or address, without brackets or port."},
		{Name: "port", Kind: scripting.KindInt, Optional: true, Doc: "The port, if there is one."},
		{Name: "path", Kind: scripting.KindString, Optional: true, Doc: "The path, with escapes decoded."},
		{Name: "query", Kind: scripting.KindString, Optional: true, Doc: "The query, without the question mark and not decoded: see decode_query."},
		{Name: "fragment", Kind: scripting.KindString, Optional: true, Doc: "The fragment, without # and with escapes decoded."},
	}
	return &scripting.Module{
		Name: "url",
		Doc:  "URLs and their parts.",
		Funcs: []scripting.Function{
			{
				Name: "parse", Doc: "Splits a URL into its parts. Missing parts are omitted, except the path, which may be empty.",
				Params: []scripting.Param{s},
				Result: scripting.Result{Kind: scripting.KindMap, Doc: "The parts.", Fields: parts, Fails: true},
				Fn:     func(a []scripting.Value) (scripting.Value, error) { return parseURL(a[0].(string)) },
				Examples: []scripting.FunctionExample{
					ex(mapOf("scheme", "https", "host", "api.example.org", "port", int64(8443), "path", "/users/ä", "query", "page=2", "fragment", "top"),
						"https://api.example.org:8443/users/%C3%A4?page=2#top"),
					ex(mapOf("path", "/health"), "/health"),
					{Args: []scripting.Value{"http://[::1"}, Err: "missing ']' in host"},
					{Args: []scripting.Value{"http://a:x"}, Err: "invalid port"},
				},
			},
			{
				Name: "format", Doc: "Builds a URL from its parts.",
				Params: []scripting.Param{{Name: "parts", Kind: scripting.KindMap, Doc: "The parts, in the format of parse.", Fields: parts}},
				Result: scripting.Result{Kind: scripting.KindString, Doc: "The URL.", Fails: true},
				Fn:     func(a []scripting.Value) (scripting.Value, error) { return formatURL(a[0].(*scripting.Map)) },
				Examples: []scripting.FunctionExample{
					ex("http://[::1]:9090/a%20b?x=1", mapOf("scheme", "http", "host", "::1", "port", int64(9090), "path", "/a b", "query", "x=1")),
					{Args: []scripting.Value{mapOf("host", "a", "port", int64(70000))}, Err: "port 70000"},
				},
			},
			{
				Name: "join", Doc: "Resolves a reference, such as a link or a Location header, against a base URL.",
				Params: []scripting.Param{text("base", "The base URL."), text("reference", "The reference: a path, a query or a complete URL.")},
				Result: scripting.Result{Kind: scripting.KindString, Doc: "The URL.", Fails: true},
				Fn:     func(a []scripting.Value) (scripting.Value, error) { return joinURL(a[0].(string), a[1].(string)) },
				Examples: []scripting.FunctionExample{
					ex("http://a/b/d?x=1", "http://a/b/c", "d?x=1"),
					ex("http://a/d", "http://a/b/c/", "../../d"),
					ex("https://z/", "http://a/b", "https://z/"),
				},
			},
			{
				Name: "escape", Doc: "Escapes text for use as one path segment or as a query value: all characters except letters, digits and - _ . ~.",
				Params: []scripting.Param{text("s", "The text.")},
				Result: scripting.Result{Kind: scripting.KindString, Doc: "The escaped text.", Fails: true},
				Fn: func(a []scripting.Value) (scripting.Value, error) {
					s := a[0].(string)
					if len(s) > scripting.MaxString/3 && escapedLen(s) > scripting.MaxString {
						return nil, errLong("escape")
					}
					return strings.ReplaceAll(url.QueryEscape(s), "+", "%20"), nil
				},
				Examples: []scripting.FunctionExample{ex("a%2Fb%20c%26d", "a/b c&d"), ex("-_.~", "-_.~")},
			},
			{
				Name: "unescape", Doc: "Decodes the escapes in a text. A plus sign is kept: use decode_query for queries.",
				Params: []scripting.Param{text("s", "The text.")},
				Result: scripting.Result{Kind: scripting.KindString, Doc: "The decoded text.", Fails: true},
				Fn: func(a []scripting.Value) (scripting.Value, error) {
					s, err := url.PathUnescape(a[0].(string))
					if err != nil {
						return nil, fmt.Errorf("cannot unescape: %w", err)
					}
					return s, nil
				},
				Examples: []scripting.FunctionExample{
					ex("a/b c+d", "a%2Fb%20c+d"),
					{Args: []scripting.Value{"100%"}, Err: `invalid URL escape "%"`},
				},
			},
			{
				Name: "decode_query", Doc: "Decodes a query. For a repeated name, the first value is used: see decode_query_lists.",
				Params: []scripting.Param{text("s", "The query, without the question mark.")},
				Result: scripting.Result{Kind: scripting.KindMap, Doc: "The values by name, in their order.", Fails: true},
				Fn: func(a []scripting.Value) (scripting.Value, error) {
					m := scripting.NewMap()
					err := eachQuery(a[0].(string), func(name, value string) {
						if _, there := m.Get(name); !there {
							m.Set(name, value)
						}
					})
					return m, err
				},
				Examples: []scripting.FunctionExample{
					ex(mapOf("q", "a b", "page", "2", "debug", ""), "q=a+b&page=2&debug&page=3"),
					{Args: []scripting.Value{"a=%zz"}, Err: `invalid URL escape "%zz"`},
				},
			},
			{
				Name: "decode_query_lists", Doc: "Decodes a query and returns all values of each name.",
				Params: []scripting.Param{text("s", "The query, without the question mark.")},
				Result: scripting.Result{Kind: scripting.KindMap, Doc: "A list of values for each name, in their order.", Fails: true},
				Fn: func(a []scripting.Value) (scripting.Value, error) {
					m := scripting.NewMap()
					err := eachQuery(a[0].(string), func(name, value string) {
						l, _ := m.Get(name)
						if l == nil {
							l = list()
							m.Set(name, l)
						}
						l.(*scripting.List).Items = append(l.(*scripting.List).Items, value)
					})
					return m, err
				},
				Examples: []scripting.FunctionExample{ex(mapOf("page", list("2", "3"), "q", list("a")), "page=2&q=a&page=3")},
			},
			{
				Name: "encode_query", Doc: "Encodes values as a query.",
				Params: []scripting.Param{{Name: "values", Kind: scripting.KindMap, Doc: "Strings, numbers and booleans, or lists of these, by name."}},
				Result: scripting.Result{Kind: scripting.KindString, Doc: "The query; the names keep their order.", Fails: true},
				Fn:     func(a []scripting.Value) (scripting.Value, error) { return encodeQuery(a[0].(*scripting.Map)) },
				Examples: []scripting.FunctionExample{
					ex("q=a+%26+b&page=2&tag=x&tag=y", mapOf("q", "a & b", "page", int64(2), "tag", list("x", "y"))),
					{Args: []scripting.Value{mapOf("a", mapOf())}, Err: "cannot encode a"},
				},
			},
		},
	}
}

func escapedLen(s string) int {
	n := len(s)
	for i := range len(s) {
		if c := s[i]; !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-_.~", c) >= 0) {
			n += 2
		}
	}
	return n
}

// withoutURL returns the error of a URL without the URL, which may be long or
// secret.
func withoutURL(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}

func parseURL(s string) (scripting.Value, error) {
	u, err := url.Parse(s)
	if err != nil {
		return nil, fmt.Errorf("cannot parse URL: %w", withoutURL(err))
	}
	m := scripting.NewMap()
	set := func(name, v string) {
		if v != "" {
			m.Set(name, v)
		}
	}
	set("scheme", u.Scheme)
	set("user", u.User.Username())
	if p, ok := u.User.Password(); ok {
		m.Set("password", p)
	}
	set("host", u.Hostname())
	if p := u.Port(); p != "" {
		n, err := strconv.ParseUint(p, 10, 16)
		if err != nil {
			return nil, fmt.Errorf("cannot parse URL: port %s is not between 0 and 65535", truncate(p, 20, "…"))
		}
		m.Set("port", int64(n))
	}
	m.Set("path", u.Path+u.Opaque) // mailto:a@b only has Opaque
	set("query", u.RawQuery)
	set("fragment", u.Fragment)
	return m, nil
}

func formatURL(m *scripting.Map) (scripting.Value, error) {
	part := func(name string) string {
		v, _ := m.Get(name)
		s, _ := v.(string)
		return s
	}
	u := url.URL{Scheme: part("scheme"), Host: part("host"), Path: part("path"), RawQuery: part("query"), Fragment: part("fragment")}
	if strings.Contains(u.Host, ":") {
		u.Host = "[" + u.Host + "]"
	}
	if v, _ := m.Get("port"); v != nil {
		n := v.(int64)
		if n < 0 || n > 65535 {
			return nil, fmt.Errorf("cannot format URL: port %d is not between 0 and 65535", n)
		}
		u.Host += ":" + strconv.FormatInt(n, 10)
	}
	if user := part("user"); user != "" {
		u.User = url.User(user)
		if v, _ := m.Get("password"); v != nil {
			u.User = url.UserPassword(user, part("password"))
		}
	}
	s := u.String()
	if len(s) > scripting.MaxString {
		return nil, errLong("format URL")
	}
	// A slash in a host would be escaped, which is invalid.
	if _, err := url.Parse(s); err != nil {
		return nil, fmt.Errorf("cannot format URL: %w", withoutURL(err))
	}
	return s, nil
}

func joinURL(base, reference string) (scripting.Value, error) {
	b, err := url.Parse(base)
	if err != nil {
		return nil, fmt.Errorf("cannot join URLs: the base: %w", withoutURL(err))
	}
	r, err := b.Parse(reference)
	if err != nil {
		return nil, fmt.Errorf("cannot join URLs: the reference: %w", withoutURL(err))
	}
	s := r.String()
	if len(s) > scripting.MaxString {
		return nil, errLong("join URLs")
	}
	return s, nil
}

// eachQuery calls fn for the pairs of a query.
func eachQuery(s string, fn func(name, value string)) error {
	n := 0
	for pair := range strings.SplitSeq(s, "&") {
		if pair == "" {
			continue
		}
		if n++; n > maxParts {
			return fmt.Errorf("cannot decode query: there are more than %d values", maxParts)
		}
		name, value, _ := strings.Cut(pair, "=")
		name, err := url.QueryUnescape(name)
		if err == nil {
			value, err = url.QueryUnescape(value)
		}
		if err != nil {
			return fmt.Errorf("cannot decode query: %w", err)
		}
		fn(name, value)
	}
	return nil
}

func encodeQuery(m *scripting.Map) (scripting.Value, error) {
	var b strings.Builder
	add := func(name string, v scripting.Value) error {
		s, err := plainText(v)
		if err != nil {
			return fmt.Errorf("cannot encode %s: %w", truncate(name, 40, "…"), err)
		}
		if b.Len()+escapedLen(name)+escapedLen(s)+2 > scripting.MaxString {
			return errLong("encode query")
		}
		if b.Len() > 0 {
			b.WriteByte('&')
		}
		b.WriteString(url.QueryEscape(name) + "=" + url.QueryEscape(s))
		return nil
	}
	for _, name := range m.Keys() {
		v, _ := m.Get(name)
		l, ok := v.(*scripting.List)
		if !ok {
			l = list(v)
		}
		for _, item := range l.Items {
			if err := add(name, item); err != nil {
				return nil, err
			}
		}
	}
	return b.String(), nil
}
