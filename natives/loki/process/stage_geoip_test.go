package process_test

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/natives/loki/process"
)

// mmdb creates a database of records by network.
//
// Format: https://maxmind.github.io/MaxMind-DB/
func mmdb(t *testing.T, records map[string]any) []byte {
	t.Helper()
	var data []byte
	nodes := [][2]uint32{{}}
	const empty, leaf = 0, 1 << 31 // node 0 has no parent
	for _, network := range slices.Sorted(maps.Keys(records)) {
		p := netip.MustParsePrefix(network)
		ip, bits := p.Addr().As16(), p.Bits()
		if p.Addr().Is4() { // IPv4 addresses are under ::/96 in the tree
			clear(ip[:12])
			bits += 96
		}
		at := uint32(0)
		for i := range bits {
			bit := ip[i/8] >> (7 - i%8) & 1
			if i == bits-1 {
				nodes[at][bit] = leaf | uint32(len(data))
				break
			}
			if nodes[at][bit] == empty {
				nodes[at][bit] = uint32(len(nodes))
				nodes = append(nodes, [2]uint32{})
			}
			at = nodes[at][bit]
		}
		data = appendMMDB(data, records[network])
	}
	var out []byte
	n := uint32(len(nodes))
	for _, pair := range nodes {
		for _, to := range pair {
			switch {
			case to == empty:
				to = n
			case to&leaf != 0:
				to = n + 16 + to&^leaf
			}
			out = binary.BigEndian.AppendUint32(out, to)
		}
	}
	out = append(append(out, make([]byte, 16)...), data...)
	out = append(out, "\xab\xcd\xefMaxMind.com"...)
	return appendMMDB(out, map[string]any{
		"binary_format_major_version": uint(2), "binary_format_minor_version": uint(0), "build_epoch": uint(1),
		"database_type": "Test", "description": map[string]any{}, "ip_version": uint(6), "languages": []any{"en"},
		"node_count": uint(n), "record_size": uint(32),
	})
}

// appendMMDB appends a value with fewer than 285 bytes or members.
func appendMMDB(b []byte, v any) []byte {
	head := func(kind, size int) {
		n := min(size, 29)
		if kind > 7 {
			b = append(b, byte(n), byte(kind-7))
		} else {
			b = append(b, byte(kind<<5|n))
		}
		if n == 29 {
			b = append(b, byte(size-29))
		}
	}
	switch v := v.(type) {
	case string:
		head(2, len(v))
		return append(b, v...)
	case float64:
		head(3, 8)
		return binary.BigEndian.AppendUint64(b, math.Float64bits(v))
	case uint:
		head(6, 4)
		return binary.BigEndian.AppendUint32(b, uint32(v))
	case bool:
		head(14, map[bool]int{true: 1}[v])
		return b
	case []any:
		head(11, len(v))
		for _, e := range v {
			b = appendMMDB(b, e)
		}
	case map[string]any:
		head(7, len(v))
		for _, k := range slices.Sorted(maps.Keys(v)) {
			b = appendMMDB(appendMMDB(b, k), v[k])
		}
	}
	return b
}

func named(en string) map[string]any { return map[string]any{"en": en, "de": "not " + en} }

// record contains the fields of a city, a network and other types of database.
var record = map[string]any{
	"city":      map[string]any{"names": named("Boxford")},
	"country":   map[string]any{"names": named("United Kingdom"), "iso_code": "GB"},
	"continent": map[string]any{"names": named("Europe"), "code": "EU"},
	"postal":    map[string]any{"code": "OX1"},
	"location":  map[string]any{"latitude": 51.75, "longitude": -1.25, "time_zone": "Europe/London"},
	"subdivisions": []any{
		map[string]any{"names": named("England"), "iso_code": "ENG"},
		map[string]any{"names": named("West Berkshire"), "iso_code": "WBK"},
	},
	"autonomous_system_number":       uint(64496),
	"autonomous_system_organization": "Example",
	"traits":                         map[string]any{"is_anycast": true, "users": uint(7), "score": 0.5},
}

func database(t *testing.T, records map[string]any) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "test.mmdb")
	if err := os.WriteFile(path, mmdb(t, records), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestGeoIP expects the labels of Alloy's manual for each type of database.
func TestGeoIP(t *testing.T) {
	path := database(t, map[string]any{"192.0.2.0/24": record, "2001:db8::/32": record, "198.51.100.7/32": map[string]any{"country": map[string]any{"iso_code": "US"}}})
	f := func(kind, ip, want string) {
		t.Helper()
		all := "geoip_city_name geoip_country_name geoip_country_code geoip_continent_name geoip_continent_code geoip_location_latitude geoip_location_longitude " +
			"geoip_postal_code geoip_timezone geoip_subdivision_name geoip_subdivision_code geoip_autonomous_system_number geoip_autonomous_system_organization any users score all no"
		var labels strings.Builder
		for _, l := range strings.Fields(all) {
			fmt.Fprintf(&labels, "%s = \"\",\n", l)
		}
		n := builtLab(t, fmt.Sprintf("stage.json {\nexpressions = { ip = \"\" }\n}\nstage.geoip {\ndb = %q\nsource = \"ip\"\n%s\n}\nstage.labels {\nvalues = {\n%s}\n}\nstage.output {\nsource = \"x\"\n}\n", path, kind, labels.String()))
		n.send(`{} {"ip":` + ip + "}\n")
		got, _, _ := strings.Cut(n.out(), " {\"ip\"")
		if got != want {
			t.Errorf("%s of %s: got\n%s\nwant\n%s", kind, ip, got, want)
		}
	}
	const city = `{geoip_city_name="Boxford",geoip_continent_code="EU",geoip_continent_name="Europe",geoip_country_code="GB",geoip_country_name="United Kingdom",` +
		`geoip_location_latitude="51.75",geoip_location_longitude="-1.25",geoip_postal_code="OX1",geoip_subdivision_code="WBK",geoip_subdivision_name="West Berkshire",geoip_timezone="Europe/London"}`
	f(`db_type = "city"`, `"192.0.2.1"`, city)
	f(`db_type = "city"`, `"2001:db8::1"`, city)
	f(`db_type = "city"`, `"::ffff:192.0.2.1"`, city)
	f(`db_type = "city"`, `"198.51.100.7"`, `{geoip_country_code="US"}`)
	f(`db_type = "country"`, `"192.0.2.1"`, `{geoip_continent_code="EU",geoip_continent_name="Europe",geoip_country_code="GB",geoip_country_name="United Kingdom"}`)
	f(`db_type = "asn"`, `"192.0.2.1"`, `{geoip_autonomous_system_number="64496",geoip_autonomous_system_organization="Example"}`)
	f(`custom_lookups = { any = "traits.is_anycast", users = "traits.users", score = "traits.score", all = "subdivisions[*].iso_code", no = "" }`, `"192.0.2.1"`,
		`{all="[\"ENG\",\"WBK\"]",any="true",score="0.5",users="7"}`)
	f("db_type = \"asn\"\ncustom_lookups = { users = \"traits.users\" }", `"192.0.2.1"`,
		`{geoip_autonomous_system_number="64496",geoip_autonomous_system_organization="Example",users="7"}`)
	// Unknown address, invalid address, missing value.
	f(`db_type = "city"`, `"203.0.113.1"`, `{}`)
	f(`db_type = "city"`, `"192.0.2.1:80"`, `{}`)
	f(`db_type = "city"`, `null`, `{}`)
}

// TestGeoIPFile: a database that changes is read again. If the new file is broken
// or missing, the old database stays in use.
func TestGeoIPFile(t *testing.T) {
	country := func(code string) map[string]any {
		return map[string]any{"192.0.2.0/24": map[string]any{"country": map[string]any{"iso_code": code}}}
	}
	path := database(t, country("DE"))
	stages := fmt.Sprintf("stage.json {\nexpressions = { ip = \"\" }\n}\nstage.geoip {\ndb = %q\nsource = \"ip\"\ndb_type = \"country\"\n}\nstage.output {\nsource = \"geoip_country_code\"\n}\n", path)
	n := builtLab(t, stages)
	want := func(code string) {
		t.Helper()
		n.send("{} {\"ip\":\"192.0.2.1\"}\n")
		n.wantLines(code)
	}
	modified := time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)
	write := func(text []byte) {
		t.Helper()
		modified = modified.Add(time.Second)
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, modified, modified); err != nil {
			t.Fatal(err)
		}
	}
	want("DE")
	if diff := cmp.Diff([]string{path}, n.c.(component.Sourced).Sourced()); diff != "" {
		t.Errorf("sources (-want +got):\n%s", diff)
	}
	write(mmdb(t, country("FR")))
	n.reload(stages)
	want("FR")
	write([]byte("not a database"))
	if err := n.c.Update(n.arguments(stages)); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("got %v, want the database named", err)
	}
	want("FR")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	n.reload(stages)
	want("FR")
}

// TestGeoIPMissing: weir check reports a missing database.
func TestGeoIPMissing(t *testing.T) {
	f := func(path, want string) {
		t.Helper()
		a := &process.GeoIPArguments{DB: path, Source: "ip", DBType: "city"}
		got := strings.Join(a.Warnings(), "\n")
		if (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%s: got %q, want %q", path, got, want)
		}
	}
	dir := t.TempDir()
	f(filepath.Join(dir, "gone.mmdb"), "it does not exist")
	f(dir, "it is no file")
	f(database(t, nil), "")
}
