package template

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"text/template"
	"time"

	"github.com/Masterminds/sprig/v3"

	"github.com/weir-run/weir/engine/files"
)

const (
	// maxCount is the maximum number of elements or repetitions that a function makes.
	maxCount = 100_000
	// lookupTimeout is the time limit of a DNS query.
	lookupTimeout = 10 * time.Second
)

// noFunctions are the functions of sprig that templates cannot use: they read the
// environment, cost much, or have other results at each call.
var noFunctions = []string{
	"env", "expandenv", "getHostByName", "untilStep", "genPrivateKey", "genCA", "genCAWithKey", "genSelfSignedCert",
	"genSelfSignedCertWithKey", "genSignedCert", "genSignedCertWithKey", "derivePassword", "bcrypt", "htpasswd",
}

// functions returns the functions of a template: those of sprig, and those of
// confd, which take precedence.
func functions(ctx context.Context, s store, env map[string]string) template.FuncMap {
	fs := sprig.TxtFuncMap()
	for _, name := range noFunctions {
		delete(fs, name)
	}
	repeat, until := fs["repeat"].(func(int, string) string), fs["until"].(func(int) []int)
	indent, nindent := fs["indent"].(func(int, string) string), fs["nindent"].(func(int, string) string)
	maps.Copy(fs, template.FuncMap{
		"exists": s.exists, "get": s.get, "gets": s.gets, "getv": s.getv, "getvs": s.getvs, "ls": s.ls, "lsdir": s.lsdir,
		"getenv": func(name string, or ...string) string {
			if v, ok := env[name]; ok || len(or) == 0 {
				return v
			}
			return or[0]
		},

		"base": path.Base, "dir": path.Dir,
		"split": strings.Split, "join": strings.Join, "replace": strings.Replace, "contains": strings.Contains,
		"toUpper": strings.ToUpper, "toLower": strings.ToLower, "trimSuffix": strings.TrimSuffix,
		"base64Encode": func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) },
		"base64Decode": func(s string) (string, error) { b, err := base64.StdEncoding.DecodeString(s); return string(b), err },
		"parseBool":    strconv.ParseBool, "atoi": strconv.Atoi,
		"json":      func(s string) (v map[string]any, err error) { err = json.Unmarshal([]byte(s), &v); return v, err },
		"jsonArray": func(s string) (v []any, err error) { err = json.Unmarshal([]byte(s), &v); return v, err },
		"map":       dict,

		"add": func(a, b int) int { return a + b }, "sub": func(a, b int) int { return a - b }, "mul": func(a, b int) int { return a * b },
		"div": func(a, b int) (int, error) {
			if b == 0 {
				return 0, errors.New("division by zero")
			}
			return a / b, nil
		},
		"mod": func(a, b int) (int, error) {
			if b == 0 {
				return 0, errors.New("division by zero")
			}
			return a % b, nil
		},
		"seq": seq, "reverse": reverse,
		"sortByLength": func(list []string) []string {
			slices.SortStableFunc(list, func(a, b string) int { return len(a) - len(b) })
			return list
		},
		"sortKVByLength": func(list []Pair) []Pair {
			slices.SortStableFunc(list, func(a, b Pair) int { return len(a.Key) - len(b.Key) })
			return list
		},

		"datetime": time.Now,
		"fileExists": func(name string) bool {
			_, err := files.Do(name, "looking at", func() (os.FileInfo, error) { return os.Stat(name) })
			return err == nil
		},
		"lookupIP":   func(host string) []string { return lookup(ctx, "ip", host) },
		"lookupIPV4": func(host string) []string { return lookup(ctx, "ip4", host) },
		"lookupIPV6": func(host string) []string { return lookup(ctx, "ip6", host) },
		"lookupSRV":  func(service, proto, name string) []*net.SRV { return lookupSRV(ctx, service, proto, name) },

		"repeat": func(n int, s string) (string, error) {
			if n > maxCount || n*len(s) > maxOutput {
				return "", fmt.Errorf("repeat %d exceeds the limit", n)
			}
			return repeat(n, s), nil
		},
		"until": func(n int) ([]int, error) {
			if n > maxCount || n < -maxCount {
				return nil, fmt.Errorf("until %d exceeds the limit of %d", n, maxCount)
			}
			return until(n), nil
		},
		"indent":  bounded(indent),
		"nindent": bounded(nindent),
	})
	return fs
}

// bounded limits the number of spaces.
func bounded(f func(int, string) string) func(int, string) (string, error) {
	return func(n int, s string) (string, error) {
		if n < 0 || n > 1000 {
			return "", fmt.Errorf("cannot indent by %d, only by 0 to 1000", n)
		}
		return f(n, s), nil
	}
}

// dict returns the map of names and values that follow each other.
func dict(args ...any) (map[string]any, error) {
	if len(args)%2 != 0 {
		return nil, errors.New("map needs a value for each name")
	}
	out := map[string]any{}
	for i := 0; i < len(args); i += 2 {
		name, ok := args[i].(string)
		if !ok {
			return nil, errors.New("a name of map must be a string")
		}
		out[name] = args[i+1]
	}
	return out, nil
}

// seq returns the numbers from first to last.
func seq(first, last int) ([]int, error) {
	if last-first >= maxCount {
		return nil, fmt.Errorf("seq %d %d has more than %d numbers", first, last, maxCount)
	}
	var out []int
	for i := first; i <= last; i++ {
		out = append(out, i)
	}
	return out, nil
}

// reverse reverses a list of strings or pairs, or any other list, like sprig.
func reverse(list any) (any, error) {
	switch l := list.(type) {
	case []string:
		l = slices.Clone(l)
		slices.Reverse(l)
		return l, nil
	case []Pair:
		l = slices.Clone(l)
		slices.Reverse(l)
		return l, nil
	case []any:
		l = slices.Clone(l)
		slices.Reverse(l)
		return l, nil
	}
	return nil, fmt.Errorf("cannot reverse a %T", list)
}

// lookup returns the addresses of a host, sorted. It returns none if the host is
// not found, like confd.
func lookup(ctx context.Context, network, host string) []string {
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	ips, err := net.DefaultResolver.LookupIP(ctx, network, host)
	if err != nil {
		return nil
	}
	out := make([]string, len(ips))
	for i, ip := range ips {
		out[i] = ip.String()
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// lookupSRV returns SRV records, sorted.
func lookupSRV(ctx context.Context, service, proto, name string) []*net.SRV {
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	_, records, err := net.DefaultResolver.LookupSRV(ctx, service, proto, name)
	if err != nil {
		return nil
	}
	text := func(r *net.SRV) string { return fmt.Sprint(r.Target, " ", r.Port, " ", r.Priority, " ", r.Weight) }
	slices.SortFunc(records, func(a, b *net.SRV) int { return strings.Compare(text(a), text(b)) })
	return records
}
