package grant_test

import (
	"net/netip"
	"net/url"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/weir-run/weir/scripting/grant"
)

func target(t *testing.T, text string) (grant.Target, error) {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		return grant.Target{}, err
	}
	return grant.ParseTarget(u)
}

func TestURL(t *testing.T) {
	f := func(pattern, text string, want bool) {
		t.Helper()
		p, err := grant.ParseURL(pattern)
		if err != nil {
			t.Fatal(err)
		}
		to, err := target(t, text)
		if got := err == nil && p.Match(to); got != want {
			t.Errorf("%s matches %s: got %v (%v), want %v", pattern, text, got, err, want)
		}
	}
	f("https://geo.internal/*", "https://geo.internal/v1/x?q=1", true)
	f("https://geo.internal/*", "https://geo.internal", true)
	f("https://geo.internal/*", "https://GEO.internal.:443/", true)
	f("https://geo.internal/*", "http://geo.internal/", false)
	f("https://geo.internal/*", "https://geo.internal:8443/", false)
	f("https://geo.internal:*/*", "https://geo.internal:8443/", true)
	f("https://geo.internal/*", "https://geo.internal.evil.com/", false)
	f("https://geo.internal/*", "https://evil.com/geo.internal/", false)
	f("https://geo.internal/*", "https://geo.internal@evil.com/", false)
	f("https://geo.internal/*", "https://user:pw@geo.internal/", false)
	// Hosts.
	f("https://*.example.com/*", "https://a.b.example.com/x", true)
	f("https://*.example.com/*", "https://example.com/x", false)
	f("https://*.example.com/*", "https://evilexample.com/x", false)
	f("http://*/*", "http://10.0.0.1/x", true)
	f("http://[::1]:9/*", "http://[0:0::1]:9/x", true)
	f("http://[::1]:9/*", "http://[::1%25eth0]:9/x", false)
	f("http://127.0.0.1/*", "http://127.1/x", false)
	// Paths.
	f("http://h/api/v1/*", "http://h/api/v1/x/y", true)
	f("http://h/api/v1/*", "http://h/api/v2/x", false)
	f("http://h/api/v1/*", "http://h/api/v1/../admin", false)
	f("http://h/api/v1/*", "http://h/api/v1/%2e%2e/admin", false)
	f("http://h/api/v1/*", "http://h/api/v1/..%2fadmin", false)
	f("http://h/api/v1/*", "http://h/api/v1/..%5cadmin", false)
	f("http://h/api/v1/*", "http://h/api%2Fv1/x", false)
	f("http://h/p/*", "http://h/p/group%2Fname", true)
	f("http://h/a%20b/*", "http://h/a b/c", true)
	f("http://h/x*z", "http://h/xz", true)
	f("http://h/x*z", "http://h/x/y/zz", true)
	f("http://h/", "http://h/x", false)
	f("http://h/*", "ftp://h/x", false)
	// Paths that a server or a proxy may resolve.
	for _, out := range []string{
		"..;/admin", "..;x=1/admin", "%2e%2e;/admin", "%2e%2e%3b/admin", "..%3Ba/admin", ".;/x", "%252e%252e/admin", "%252e%252e%252fadmin",
		"%25252e%25252e/admin", "%25252525252525252e%25252525252525252e/", "..%255cadmin", "..%20/admin", "..%09/admin", "%c0%ae%c0%ae/admin",
		"%25c0%25ae/x", "%u002e%u002e/admin", "%25zz/%252e%252e/admin", "..%00/admin", "x%00/y", "x%0d%0aHost:%20evil", "..%5c..%5cadmin", "x/..%2f..;/admin", "..%ef%bc%8fadmin", "%ef%bc%8e%ef%bc%8e/admin",
	} {
		f("http://h/api/*", "http://h/api/"+out, false)
		f("http://h/*", "http://h/"+out, false)
	}
	for _, in := range []string{"a..b", "...", "x;v=1/y", "100%25", "a%2520b", "%c3%a9", "%e9", "//x", "a.", "..a"} {
		f("http://h/api/*", "http://h/api/"+in, true)
	}
	f("http://h/api/*", "http://h/api;/x", false)
	f("http://h/api/*", "http://h//api/x", false)
	f("http://h/api/*", "http://h/api%2f..%2fadmin", false)
	f("http://h/api/*", "http://h/API/x", false)
	f("http://h/*", "http:h/x", false)
}

func TestURLMistakes(t *testing.T) {
	f := func(pattern, want string) {
		t.Helper()
		_, err := grant.ParseURL(pattern)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", pattern, err, want)
		}
	}
	f("", "must begin with http")
	f("geo.internal/*", "must begin with http")
	f("*://h/*", "must begin with http")
	f("https://geo.internal", "write https://geo.internal/* for all paths")
	f("https:///x", "no host")
	f("https://u@h/*", "has a user")
	f("https://h/*?x=1", "query")
	f("https://h/a b", "%20")
	f("https://a*.com/*", "star that is not the first part")
	f("https://a..b/*", "empty part")
	f("https://*.10.0.0.1/*", "star before an address")
	f("https://h:0/*", "port")
	f("https://h:99999/*", "port")
	f("https://[::1/*", "[ without ]")
	f("https://[1.2.3.4]/*", "no address of IPv6")
	f("https://h/../*", ". or .. as a part")
	f("https://h/%2e%2e/*", ". or .. as a part")
	f("https://h/..;/*", ". or .. as a part")
	f("https://h/%252e%252e/*", ". or .. as a part")
	f("https://h/%2A", "%2A")
	f("https://h/%zz", "cannot be read")
	f("https://bücher.de/*", "beyond ASCII")
}

func TestURLCovers(t *testing.T) {
	f := func(p, q string, want bool) {
		t.Helper()
		a, err := grant.ParseURL(p)
		if err != nil {
			t.Fatal(err)
		}
		b, err := grant.ParseURL(q)
		if err != nil {
			t.Fatal(err)
		}
		if got := a.Covers(b); got != want {
			t.Errorf("%s covers %s: got %v, want %v", p, q, got, want)
		}
	}
	f("https://h/*", "https://h/v1/*", true)
	f("https://h/v1/*", "https://h/*", false)
	f("https://*.x.de/*", "https://a.x.de/*", true)
	f("https://*.x.de/*", "https://*.a.x.de/*", true)
	f("https://a.x.de/*", "https://*.x.de/*", false)
	f("https://*/*", "https://h/x", true)
	f("https://h/*", "http://h/*", false)
	f("https://h:*/*", "https://h:81/*", true)
}

func TestEnv(t *testing.T) {
	f := func(pattern, name string, want bool) {
		t.Helper()
		p, err := grant.ParseEnv(pattern)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.Match(name); got != want {
			t.Errorf("%s matches %s: got %v, want %v", pattern, name, got, want)
		}
	}
	f("REGION", "REGION", true)
	f("REGION", "REGIONS", false)
	f("WEIR_*", "WEIR_X", true)
	f("WEIR_*", "AWS_SECRET", false)
	for _, bad := range []string{"", "*", "A*B", "A=B", "A B", "1A"} {
		if _, err := grant.ParseEnv(bad); err == nil {
			t.Errorf("%q is a pattern", bad)
		}
	}
}

// abs makes a path of the tests absolute on this system.
func abs(p string) string {
	if runtime.GOOS == "windows" && strings.HasPrefix(p, "/") {
		return "C:" + p
	}
	return p
}

func TestFile(t *testing.T) {
	f := func(pattern, name, want string) {
		t.Helper()
		p, err := grant.ParseFile(abs(pattern))
		if err != nil {
			t.Fatal(err)
		}
		dir, rel, ok, err := p.Match(abs(name))
		got := filepath.ToSlash(dir) + " " + filepath.ToSlash(rel)
		switch {
		case err != nil:
			got = err.Error()
		case !ok:
			got = "no"
		}
		if !strings.Contains(got, want) {
			t.Errorf("%s and %s: got %q, want %q", pattern, name, got, want)
		}
	}
	f("/etc/weir/*", "/etc/weir/a.json", "/etc/weir a.json")
	f("/etc/weir/*", "/etc/weir/sub/a.json", "no")
	f("/etc/weir/*", "/etc/weirder/a", "no")
	f("/etc/weir/*", "/etc/weir", "no")
	f("/etc/weir/map.json", "/etc/weir/map.json", "/etc/weir map.json")
	f("/etc/weir/map.json", "/etc/weir/map.jsonx", "no")
	f("/etc/weir/**", "/etc/weir/a/b/c", "/etc/weir a/b/c")
	f("/etc/weir/**", "/etc/weir", "no")
	f("/etc/weir/**/*.json", "/etc/weir/a.json", "/etc/weir a.json")
	f("/etc/weir/**/*.json", "/etc/weir/x/y/a.json", "/etc/weir x/y/a.json")
	f("/etc/weir/**/*.json", "/etc/weir/x/y/a.txt", "no")
	f("/sys/class/net/*/mtu", "/sys/class/net/eth0/mtu", "/sys/class/net eth0/mtu")
	f("/etc/weir/*", "/etc/weir/../shadow", "there must be no . or ..")
	f("/etc/weir/*", "/etc/weir/./a", "there must be no . or ..")
	f("/etc/weir/*", "/etc/weir//a", "no //")
	f("/etc/weir/*", "/etc/weir/a/", "no slash at its end")
	f("/etc/weir/*", "/etc/weir/a\x00b", "zero byte")
	if _, _, _, err := mustFile(t, "/etc/weir/*").Match("etc/passwd"); err == nil {
		t.Error("a relative path is one")
	}
}

func mustFile(t *testing.T, text string) grant.File {
	t.Helper()
	p, err := grant.ParseFile(abs(text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestFileMistakes(t *testing.T) {
	for pattern, want := range map[string]string{
		"": "empty", "etc/x": "absolute", abs("/etc/../x"): "write it as", abs("/*"): "names no folder", abs("/**"): "names no folder",
		abs("/a/x**"): "part of its own", abs("/a/**/b/**"): "** twice", abs("/etc"): "names no folder",
	} {
		if _, err := grant.ParseFile(pattern); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", pattern, err, want)
		}
	}
}

func TestFileWatched(t *testing.T) {
	f := func(pattern, want string) {
		t.Helper()
		got, _ := mustFile(t, pattern).Watched()
		if filepath.ToSlash(got) != want {
			t.Errorf("%s: got %q, want %q", pattern, got, want)
		}
	}
	f("/etc/weir/a", abs("/etc/weir/a"))
	f("/etc/weir/*.json", abs("/etc/weir/*.json"))
	f("/etc/weir/**", "")
	f("/etc/*/x", "")
}

func TestFileCovers(t *testing.T) {
	f := func(p, q string, want bool) {
		t.Helper()
		if got := mustFile(t, p).Covers(mustFile(t, q)); got != want {
			t.Errorf("%s covers %s: got %v, want %v", p, q, got, want)
		}
	}
	f("/etc/weir/*", "/etc/weir/a.json", true)
	f("/etc/weir/*", "/etc/weir/**", false)
	f("/etc/weir/**", "/etc/weir/**", true)
	f("/etc/weir/**", "/etc/weir/x/*.json", true)
	f("/etc/weir/a.json", "/etc/weir/*", false)
}

func TestCommand(t *testing.T) {
	f := func(pattern string, want bool, args ...string) {
		t.Helper()
		p, err := grant.ParseCommand(strings.Replace(pattern, "/bin/x", abs("/bin/x"), 1))
		if err != nil {
			t.Fatal(err)
		}
		if got := p.MatchArgs(args); got != want {
			t.Errorf("%s with %q: got %v, want %v", pattern, args, got, want)
		}
	}
	f("/bin/x", true)
	f("/bin/x", true, "a", "-rf /")
	f("/bin/x is-active *", true, "is-active", "nginx")
	f("/bin/x is-active *", false, "stop", "nginx")
	f("/bin/x is-active *", false, "is-active")
	f("/bin/x is-active *", false, "is-active", "a", "b")
	f("/bin/x is-active ...", true, "is-active")
	f("/bin/x is-active ...", true, "is-active", "a", "b")
	// A star does not match an option, unless the pattern allows it.
	f("/bin/x /dir *", true, "/dir", "a")
	f("/bin/x /dir *", true, "/dir", "")
	f("/bin/x /dir *", false, "/dir", "-delete")
	f("/bin/x *dir", false, "-dir")
	f("/bin/x /dir -*", true, "/dir", "-delete")
	f("/bin/x /dir -*", false, "/dir", "a")
	f("/bin/x --n=*", true, "--n=1")
	f("/bin/x -- *", true, "--", "-delete")
	f("/bin/x -- ...", true, "--", "-a", "b", "-c")
	f("/bin/x /dir ...", true, "/dir", "a", "b")
	f("/bin/x /dir ...", false, "/dir", "a", "-delete")
	f("/bin/x /dir -...", true, "/dir", "-delete", "a", "-x")
	f("/bin/x -...", true, "-delete")
	f("/bin/x ...", true)
	f("/bin/x 'a b' *.txt", true, "a b", "c.txt")
	f("/bin/x 'a b' *.txt", false, "a b", "c.txt.gz")

	p, err := grant.ParseCommand("'" + abs("/opt/my tools/df") + "' -P")
	if err != nil {
		t.Fatal(err)
	}
	if !p.Is("df") || !p.Is(abs("/opt/my tools/df")) || p.Is("/bin/df") || filepath.ToSlash(p.Path()) != abs("/opt/my tools/df") {
		t.Errorf("%s is not what it is", p)
	}
	for pattern, want := range map[string]string{
		"": "empty", "df": "absolute", abs("/bin/*"): "has a star", abs("/bin/df") + " ... x": "must be the last", abs("/bin/df") + " -... x": "must be the last",
		abs("/bin/df") + " 'x": "quote", abs("/bin/df") + " x'y'": "quote", abs("/bin/df") + " x\ny": "line feed", abs("/bin/../df"): "write it as",
	} {
		if _, err := grant.ParseCommand(pattern); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", pattern, err, want)
		}
	}
}

// FuzzFile compares patterns of files with regular expressions that mean the
// same.
func FuzzFile(f *testing.F) {
	for _, p := range []string{"/etc/weir/*", "/etc/weir/**", "/a/**/b*c", "/a/*/*.json", "/a/b"} {
		for _, name := range []string{"/etc/weir/x", "/etc/weir/../x", "/a/x/y/bzc", "/a/**/b*c", "/a/x/y.json", "/a/b"} {
			f.Add(p, name)
		}
	}
	f.Fuzz(func(t *testing.T, pattern, name string) {
		p, err := grant.ParseFile(pattern)
		if err != nil || runtime.GOOS == "windows" || !utf8.ValidString(pattern+name) {
			return
		}
		_, rel, ok, err := p.Match(name)
		if err != nil {
			return
		}
		re := strings.ReplaceAll(regexp.QuoteMeta(pattern), `/\*\*/`, "/(.+/)?")
		re = strings.ReplaceAll(re, `/\*\*`, "/.+")
		re = strings.ReplaceAll(re, `\*`, "[^/]*")
		want := regexp.MustCompile("(?s)^" + re + "$").MatchString(name)
		if want && !ok && strings.Contains(name, "**") {
			return // a pattern is no file
		}
		if ok != want {
			t.Fatalf("%q matches %q: got %v, want %v", pattern, name, ok, want)
		}
		if ok && (!filepath.IsLocal(rel) || strings.Contains(rel, "..") && !strings.Contains(name, "..")) {
			t.Fatalf("%q matches %q, which is %q below its folder", pattern, name, rel)
		}
	})
}

// FuzzURL looks for URLs that a pattern matches although they lead elsewhere.
func FuzzURL(f *testing.F) {
	for _, p := range []string{"https://geo.internal/*", "http://*.example.com:*/api/*", "http://*/x*y", "http://[::1]:9/*", "http://10.0.0.1/"} {
		for _, u := range []string{"https://geo.internal/v1", "http://a.example.com:8/api/../x", "http://h/x%2fy", "http://[::1]:9/%2e%2e/", "http://10.0.0.1", "http://a@b/"} {
			f.Add(p, u)
		}
	}
	f.Fuzz(func(t *testing.T, pattern, text string) {
		p, err := grant.ParseURL(pattern)
		if err != nil {
			return
		}
		if again, err := grant.ParseURL(p.String()); err != nil || again != p || !p.Covers(p) {
			t.Fatalf("%q is another pattern when read again: %v", pattern, err)
		}
		u, err := url.Parse(text)
		if err != nil {
			return
		}
		to, err := grant.ParseTarget(u)
		if err != nil || !p.Match(to) {
			return
		}
		// If a URL matches, that URL is requested: the host that Go's client connects
		// to is the one that was compared, and no part of the path is resolved.
		host := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
		if p.Named() && host != p.Host() && !sameAddress(host, p.Host()) {
			t.Fatalf("%q matches %q, whose host is %q", pattern, text, host)
		}
		if !p.Named() && p.Host() != "" && !strings.HasSuffix(host, "."+p.Host()) {
			t.Fatalf("%q matches %q, whose host is %q", pattern, text, host)
		}
		if u.User != nil || strings.Contains(u.Path, "/../") || strings.HasSuffix(u.Path, "/..") {
			t.Fatalf("%q matches %q", pattern, text)
		}
		if u.Scheme+"://" != pattern[:len(u.Scheme)+3] {
			t.Fatalf("%q matches %q, of another scheme", pattern, text)
		}
	})
}

func sameAddress(a, b string) bool {
	x, err := netip.ParseAddr(a)
	y, err2 := netip.ParseAddr(b)
	return err == nil && err2 == nil && x == y
}
