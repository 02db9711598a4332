package scrape

import (
	"bytes"
	"errors"
	"io"
	"math"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
)

// valueSeeds are values as exporters and attackers write them.
var valueSeeds = []string{
	"0", "-0", "+0", "1", "-1", "+1", "1.5", "1e3", "1E3", "1e+06", "1.7976931348623157e+308", "4.9e-324", "1e999", "-1e999",
	"NaN", "nan", "-NaN", "+Inf", "-Inf", "Inf", "inf", "Infinity", "infinit", "0x1p-2", "0x10", "0X1P2", "1_000", "0b1", "0o7",
	"9007199254740992", "9007199254740993", "18446744073709551615", "18446744073709551616", "0.1", "0.30000000000000004",
	"1e22", "1e23", "123456789012345678e22", "1e-22", "1e-23", "00000000000000000000001", ".5", "5.", ".", "", "-", "e5", "1e", "1e+", "1e12345",
	"1.2.3", "1 ", " 1", "1\t", "1{", "1\x00", "1\x002", "\xff", "1.69e+09", "1694005020.123",
}

// FuzzParseValue compares parseValue with textparse on the same token.
func FuzzParseValue(f *testing.F) {
	for _, s := range valueSeeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, token []byte) {
		v, n, ok := parseValue(token)
		if !ok {
			return // the caller uses textparse in this case
		}
		if n == 0 || n > len(token) {
			t.Fatalf("parseValue(%q): length %d", token, n)
		}
		for name, p := range map[string]textparse.Parser{
			"prometheus":  textparse.NewPromParser(bytes.Join([][]byte{[]byte("a "), token[:n], nil}, nil), labels.NewSymbolTable(), false),
			"openmetrics": textparse.NewOpenMetricsParser(bytes.Join([][]byte{[]byte("a "), token[:n], []byte("\n# EOF\n")}, nil), labels.NewSymbolTable()),
		} {
			if et, err := p.Next(); err != nil || et != textparse.EntrySeries {
				t.Fatalf("%s: %q is %v, but textparse says %v, %v", name, token[:n], v, et, err)
			}
			_, _, want := p.Series()
			if math.Float64bits(v) != math.Float64bits(want) {
				t.Fatalf("%s: %q: got %x, want %x", name, token[:n], math.Float64bits(v), math.Float64bits(want))
			}
			if _, err := p.Next(); !errors.Is(err, io.EOF) {
				t.Fatalf("%s: %q: something follows: %v", name, token[:n], err)
			}
		}
	})
}

func TestParseValueTakesWhatIsUsual(t *testing.T) {
	f := func(text string, want float64, rest string) {
		t.Helper()
		v, n, ok := parseValue([]byte(text))
		if !ok || math.Float64bits(v) != math.Float64bits(want) || text[n:] != rest {
			t.Errorf("parseValue(%q) = %v, rest %q, %v; want %v, rest %q", text, v, text[n:], ok, want, rest)
		}
	}
	f("1\n", 1, "\n")
	f("1 123\n", 1, " 123\n")
	f("1.5e+09", 1.5e9, "")
	f("-0\n", math.Copysign(0, -1), "\n")
	f("+Inf\n", math.Inf(1), "\n")
	f("0.30000000000000004\n", 0.30000000000000004, "\n")
	f("9007199254740993\n", 9007199254740992, "\n")
	f("NaN\n", math.Float64frombits(0x7ff8000000000001), "\n")
}

func TestParseTimestamps(t *testing.T) {
	f := func(parse func([]byte) (int64, int, bool), text string, want int64, wantOK bool) {
		t.Helper()
		got, _, ok := parse([]byte(text))
		if ok != wantOK || ok && got != want {
			t.Errorf("%q: got %d, %v, want %d, %v", text, got, ok, want, wantOK)
		}
	}
	f(parseMillis, "1694005020123\n", 1694005020123, true)
	f(parseMillis, "-1\n", 0, false)
	f(parseMillis, "1.5\n", 0, false)
	f(parseMillis, "9999999999999999999\n", 0, false)
	f(parseSeconds, "1694005020.123\n", 1694005020123, true)
	f(parseSeconds, "-1.5 #", -1500, true)
	f(parseSeconds, "NaN\n", 0, false)
	f(parseSeconds, "+Inf\n", 0, false)
}
