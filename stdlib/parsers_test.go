package stdlib_test

import (
	"encoding/csv"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-run/weir/scripting"
)

// failing returns a function that checks the errors of calls.
func failing(t *testing.T) func(fn, want string, args ...scripting.Value) {
	return func(fn, want string, args ...scripting.Value) {
		t.Helper()
		v, err := call(t, fn, args...)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %.60v and error %v, want %q", fn, plain(v), err, want)
		}
		if err != nil && len(err.Error()) > 300 {
			t.Errorf("%s: the error has %d bytes: %.100s", fn, len(err.Error()), err)
		}
	}
}

func TestCSV(t *testing.T) {
	f := func(want any, s string, opts ...scripting.Value) {
		t.Helper()
		if diff := cmp.Diff(want, plain(must(t, "csv.decode", append([]scripting.Value{s}, opts...)...))); diff != "" {
			t.Errorf("%q (-want +got):\n%s", s, diff)
		}
	}
	f([]any{}, "")
	f([]any{}, "\n\n", mapOf("header", true))
	f([]any{[]any{"a", "b\nc"}, []any{"d"}}, "\ufeffa,\"b\nc\"\r\n\nd")
	f([]any{[]any{"a", "b c"}}, "# x\na,  b c", mapOf("comment", "#", "trim", true))
	f([]any{[]any{`a"b`}}, `a"b`, mapOf("lazy_quotes", true))
	f([]any{[]any{"a", "b"}}, "a→b", mapOf("separator", "→"))

	fails := failing(t)
	fails("csv.decode", `the header has "a" twice`, "a,a\n1,2", mapOf("header", true))
	fails("csv.decode", "separator must be one character", "a", mapOf("separator", "ab"))
	fails("csv.decode", "separator must be one character", "a", mapOf("separator", ""))
	fails("csv.decode", "separator and comment are the same", "a", mapOf("comment", ","))
	fails("csv.decode", `line 1, column 2: bare "`, `a"b`)
	fails("csv.decode", "more than 500000 fields", strings.Repeat(",,,,\n", 100_001))
	fails("csv.decode", `has no key "seperator"`, "a", mapOf("seperator", ";"))
	fails("csv.encode", "row 1: it is a map: name the fields", list(mapOf("a", "b")))
	fails("csv.encode", "row 2: it has 1 fields, but the header has 2", list(list("a", "b"), list("a")), mapOf("header", list("x", "y")))
	fails("csv.encode", "row 1: it is neither a list nor a map", list("a"))
	fails("csv.encode", "row 2: it has no fields", list(list("a"), list()))
	fails("csv.encode", "the header: it has no fields", list(), mapOf("header", list()))
	if got := must(t, "csv.encode", list(list("a"), list(""), list("b"))); got != "a\n\"\"\nb\n" {
		t.Errorf("an empty field alone: %q", got)
	}
	fails("csv.encode", "longer than", list(list(strings.Repeat("x", 5<<20)), list(strings.Repeat("x", 5<<20))))
}

func TestURL(t *testing.T) {
	fails := failing(t)
	for _, fn := range []string{"url.parse", "url.unescape", "url.decode_query", "url.decode_query_lists"} {
		fails(fn, "invalid URL escape", "/%zz")
	}
	fails("url.parse", "port 70000 is not between", "http://a:70000/")
	fails("url.parse", "cannot parse URL: ", "http://u:s3cret@[::1")
	if _, err := call(t, "url.parse", "http://u:s3cret@[::1"); strings.Contains(err.Error(), "s3cret") {
		t.Errorf("the error tells the password: %v", err)
	}
	fails("url.format", "invalid URL escape", mapOf("scheme", "http", "host", "a/b"))
	fails("url.format", "invalid URL escape", mapOf("scheme", "http", "host", "a@b"))
	fails("url.format", `has no key "hots"`, mapOf("hots", "a"))
	fails("url.join", "the base: ", "http://[", "a")
	fails("url.join", "the reference: ", "http://a", ":")
	fails("url.escape", "longer than", strings.Repeat("/", 3<<20))
	fails("url.encode_query", "longer than", mapOf("a", strings.Repeat("/", 3<<20)))
	fails("url.decode_query", "more than 100000 values", strings.Repeat("a&", 100_001))
}

func TestNet(t *testing.T) {
	fails := failing(t)
	long := strings.Repeat("1", 1<<20)
	for _, fn := range []string{"net.parse_ip", "net.kind"} {
		fails(fn, "as an address", long)
	}
	fails("net.contains", "as a network: prefix length out of range", "10.0.0.0/33", "10.0.0.1")
	fails("net.contains", "prefix is too short", "::ffff:10.0.0.0/8", "10.0.0.1")
	fails("net.mask", "cannot keep 129 bits", "::1", int64(24), int64(129))
	fails("net.split_host_port", "too many colons", "a:b:c:80]")
	fails("net.split_host_port", "port 99999", "a:99999")
	fails("net.join_host_port", "port -1", "a", int64(-1))
	if got := must(t, "net.contains", "::ffff:10.0.0.0/104", "10.9.9.9"); got != true {
		t.Error("a network of IPv4 in IPv6 form has no IPv4 address")
	}

	// A table returns the same results as checking its networks one by one.
	cidrs := list("0.0.0.0/0", "10.0.0.0/8", "10.1.0.0/16", "10.1.2.3", "fd00::/8", "fd00:1::/32", "10.0.0.0/8")
	n := must(t, "net.networks", cidrs).(*scripting.Object)
	find, _ := n.Type.Method("find")
	for _, ip := range []string{"10.1.2.3", "10.1.2.4", "10.2.0.0", "9.9.9.9", "fd00:1::9", "fd00:2::9", "fe80::1%eth0", "::ffff:10.1.0.1"} {
		var want scripting.Value
		bits := -1
		for _, c := range cidrs.Items {
			if must(t, "net.contains", c, ip) != true {
				continue
			}
			p, err := netip.ParsePrefix(c.(string))
			if err != nil {
				p = netip.PrefixFrom(netip.MustParseAddr(c.(string)), 32)
			}
			if p.Bits() > bits {
				want, bits = c, p.Bits()
			}
		}
		if got, err := find.Call(n, []scripting.Value{ip}); err != nil || got != want {
			t.Errorf("%s is in %v, want %v (%v)", ip, got, want, err)
		}
	}
}

func TestSemver(t *testing.T) {
	fails := failing(t)
	fails("semver.parse", "as version", strings.Repeat("1", 1000))
	fails("semver.parse", "out of range", "1.2.18446744073709551615")
	fails("semver.satisfies", "the limit is 1024", "1.0.0", strings.Repeat(">1 ", 1000))

	// https://semver.org/#spec-item-11
	order := []string{"1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-alpha.beta", "1.0.0-beta", "1.0.0-beta.2", "1.0.0-beta.11", "1.0.0-rc.1", "1.0.0", "2.0.0", "2.1.0", "2.1.1"}
	for i, a := range order {
		for j, b := range order {
			want := int64(0)
			if i < j {
				want = -1
			} else if i > j {
				want = 1
			}
			if got := must(t, "semver.compare", a, b); got != want {
				t.Errorf("%s and %s: got %v, want %d", a, b, got, want)
			}
		}
	}
}

func FuzzCSV(f *testing.F) {
	for _, s := range []string{"a,b\n1,2", "\"a\n\"\"b\",c\r\n", " , \n", "\r", "a;b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		r := csv.NewReader(strings.NewReader(strings.TrimPrefix(s, "\ufeff")))
		r.FieldsPerRecord = -1
		rows, wantErr := r.ReadAll()
		v, err := call(t, "csv.decode", s)
		if (err == nil) != (wantErr == nil) {
			t.Fatalf("%q: %v, encoding/csv says %v", s, err, wantErr)
		}
		if err != nil {
			return
		}
		if len(v.(*scripting.List).Items) != len(rows) {
			t.Fatalf("%q: %d rows, encoding/csv has %d", s, len(v.(*scripting.List).Items), len(rows))
		}
		out := must(t, "csv.encode", v)
		again := must(t, "csv.decode", out)
		if diff := cmp.Diff(plain(v), plain(again)); diff != "" {
			t.Fatalf("%q became %q (-first +second):\n%s", s, out, diff)
		}
		_, _ = call(t, "csv.decode", s, mapOf("header", true, "trim", true, "lazy_quotes", true, "separator", ";", "comment", "#"))
	})
}

func FuzzURL(f *testing.F) {
	for _, s := range []string{"https://u:p@h:1/a%2fb?q=1#f", "mailto:a@b", "//h", "?a=b&a=c", "http://[fe80::1%25en0]:80/", "a%20b"} {
		f.Add(s, "../x")
	}
	f.Fuzz(func(t *testing.T, s, other string) {
		if v, err := call(t, "url.parse", s); err == nil {
			if _, err := url.Parse(s); err != nil {
				t.Fatalf("%q parsed, but net/url says %v", s, err)
			}
			if _, err := call(t, "url.format", v); err != nil && !strings.Contains(err.Error(), "cannot format URL") {
				t.Fatalf("%q: %v", s, err)
			}
		}
		_, _ = call(t, "url.join", s, other)
		if got := must(t, "url.unescape", must(t, "url.escape", s)); got != s {
			t.Fatalf("%q escaped and back is %q", s, got)
		}
		q := must(t, "url.encode_query", mapOf("k", s, "l", list(s, other)))
		back := must(t, "url.decode_query_lists", q)
		if diff := cmp.Diff(map[string]any{"k": []any{s}, "l": []any{s, other}}, plain(back)); diff != "" {
			t.Fatalf("%q (-want +got):\n%s", q, diff)
		}
		one, err := call(t, "url.decode_query", s)
		all, err2 := call(t, "url.decode_query_lists", s)
		if (err == nil) != (err2 == nil) || err == nil && one.(*scripting.Map).Len() != all.(*scripting.Map).Len() {
			t.Fatalf("%q: %v, %v and %v, %v", s, plain(one), err, plain(all), err2)
		}
	})
}

func FuzzNet(f *testing.F) {
	for _, s := range []string{"10.0.0.1", "::ffff:1.2.3.4", "fe80::1%eth0", "10.0.0.0/8", "[::1]:80", "a:80", "0/0"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if v, err := call(t, "net.parse_ip", s); err == nil {
			if again := must(t, "net.parse_ip", v); again != v {
				t.Fatalf("%q is %v and then %v", s, v, again)
			}
			if must(t, "net.contains", v, s) != true {
				t.Fatalf("%q is not in the network of its own", s)
			}
			must(t, "net.kind", s)
			must(t, "net.mask", s, int64(8))
		} else if must(t, "net.version", s) != nil {
			t.Fatalf("%q has a version", s)
		}
		if v, err := call(t, "net.split_host_port", s); err == nil {
			if p, ok := v.(*scripting.Map).Get("port"); ok {
				h, _ := v.(*scripting.Map).Get("host")
				must(t, "net.join_host_port", h, p)
			}
		}
		_, _ = call(t, "net.networks", list(s))
	})
}

func FuzzSemver(f *testing.F) {
	for _, s := range []string{"1.2.3", "v1", "1.0.0-rc.1+b", ">=1.2 <2 || 3.x", "~1", "1 - 2", "^0.0.x"} {
		f.Add(s, "1.2.3-a")
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		x, err := call(t, "semver.compare", a, b)
		y, err2 := call(t, "semver.compare", b, a)
		if (err == nil) != (err2 == nil) || err == nil && x.(int64) != -y.(int64) {
			t.Fatalf("%q and %q: %v, %v and %v, %v", a, b, x, err, y, err2)
		}
		_, _ = call(t, "semver.satisfies", b, a)
		if must(t, "semver.valid", a) == true {
			if _, err := call(t, "semver.parse", a); err != nil && !strings.Contains(err.Error(), "out of range") && !strings.Contains(err.Error(), "too long") {
				t.Fatalf("%q is valid, but: %v", a, err)
			}
		}
	})
}
