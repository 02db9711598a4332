package process

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"sync"

	"github.com/jmespath-community/go-jmespath"
	"github.com/oschwald/maxminddb-golang"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/files"
)

// GeoIPArguments are the arguments of stage.geoip.
type GeoIPArguments struct {
	// The file with the database, in MaxMind's format, of at most 1 GiB; it is read
	// again when it changes.
	DB string `alloy:"db,attr"`
	// The extracted value that is the IP address.
	Source string `alloy:"source,attr"`
	// The type of the database, which determines the extracted values: city, asn or
	// country.
	DBType string `alloy:"db_type,attr,optional"`
	// Values to extract from any database, by name: a JMESPath expression; an empty
	// expression means the name itself.
	CustomLookups map[string]string `alloy:"custom_lookups,attr,optional"`
}

// Validate returns all errors in the arguments, joined.
func (a *GeoIPArguments) Validate() error {
	var errs []error
	if a.DB == "" {
		errs = append(errs, errors.New("db is empty: name the file with the database"))
	}
	if a.Source == "" {
		errs = append(errs, errors.New("source is empty: name the extracted value that is the IP address"))
	}
	switch a.DBType {
	case "city", "asn", "country":
	case "":
		if len(a.CustomLookups) == 0 {
			errs = append(errs, errors.New("nothing is looked up: set db_type, custom_lookups or both"))
		}
	default:
		errs = append(errs, fmt.Errorf("db_type is %q, want city, asn or country", a.DBType))
	}
	for _, name := range slices.Sorted(maps.Keys(a.CustomLookups)) {
		if _, err := jmespath.Compile(a.lookup(name)); err != nil {
			errs = append(errs, fmt.Errorf("custom_lookups: cannot compile %s = %q as JMESPath: %w", name, a.CustomLookups[name], err))
		}
	}
	return errors.Join(errs...)
}

var (
	_ component.Warner    = (*GeoIPArguments)(nil)
	_ component.FileNamer = (*Arguments)(nil)
)

// NamedFiles returns the databases of all stages.
func (a *Arguments) NamedFiles() []component.NamedFile { return databases(a.Stages) }

func databases(stages []Stage) (out []component.NamedFile) {
	for _, s := range stages {
		if s.GeoIP != nil {
			out = append(out, component.NamedFile{Path: "stage.geoip.db", File: s.GeoIP.DB})
		}
		if s.Match != nil {
			out = append(out, databases(s.Match.Stages)...)
		}
	}
	return out
}

// Warnings reports that the database does not exist. It may exist on the machine
// where weir will run.
func (a *GeoIPArguments) Warnings() []string {
	if a.DB == "" {
		return nil
	}
	why := "it is no file"
	switch i, err := files.StatSoon(a.DB); {
	case errors.Is(err, files.ErrHung):
		return nil // unknown
	case errors.Is(err, fs.ErrNotExist):
		why = "it does not exist"
	case err != nil:
		why = err.Error()
	case i.Mode().IsRegular():
		return nil
	}
	return []string{fmt.Sprintf("cannot read db %q: %s", a.DB, why)}
}

func (a *GeoIPArguments) lookup(name string) string {
	if e := a.CustomLookups[name]; e != "" {
		return e
	}
	return name
}

// geoRecord is the part of a record that db_type extracts.
type geoRecord struct {
	City struct {
		Names geoNames `maxminddb:"names"`
	} `maxminddb:"city"`
	Country struct {
		Names geoNames `maxminddb:"names"`
		Code  string   `maxminddb:"iso_code"`
	} `maxminddb:"country"`
	Continent struct {
		Names geoNames `maxminddb:"names"`
		Code  string   `maxminddb:"code"`
	} `maxminddb:"continent"`
	Postal struct {
		Code string `maxminddb:"code"`
	} `maxminddb:"postal"`
	Location struct {
		Latitude  float64 `maxminddb:"latitude"`
		Longitude float64 `maxminddb:"longitude"`
		TimeZone  string  `maxminddb:"time_zone"`
	} `maxminddb:"location"`
	Subdivisions []struct {
		Names geoNames `maxminddb:"names"`
		Code  string   `maxminddb:"iso_code"`
	} `maxminddb:"subdivisions"`
	ASN uint   `maxminddb:"autonomous_system_number"`
	Org string `maxminddb:"autonomous_system_organization"`
}

type geoNames struct {
	English string `maxminddb:"en"`
}

// geoField is the name and value of an extracted field.
type geoField struct {
	name string
	of   func(r *geoRecord) value
}

func textField(name string, of func(r *geoRecord) string) geoField {
	return geoField{name, func(r *geoRecord) value {
		if s := of(r); s != "" {
			return value{text, s}
		}
		return value{}
	}}
}

func placeField(name string, of func(r *geoRecord) float64) geoField {
	return geoField{name, func(r *geoRecord) value {
		if r.Location.Latitude == 0 && r.Location.Longitude == 0 {
			return value{}
		}
		return value{number, formatNumber(of(r))}
	}}
}

// geoFields returns the fields that db_type extracts.
func geoFields(dbType string) []geoField {
	country := []geoField{
		textField("geoip_country_name", func(r *geoRecord) string { return r.Country.Names.English }),
		textField("geoip_country_code", func(r *geoRecord) string { return r.Country.Code }),
		textField("geoip_continent_name", func(r *geoRecord) string { return r.Continent.Names.English }),
		textField("geoip_continent_code", func(r *geoRecord) string { return r.Continent.Code }),
	}
	switch dbType {
	case "country":
		return country
	case "asn":
		return []geoField{
			{"geoip_autonomous_system_number", func(r *geoRecord) value {
				if r.ASN == 0 {
					return value{}
				}
				return value{number, strconv.FormatUint(uint64(r.ASN), 10)}
			}},
			textField("geoip_autonomous_system_organization", func(r *geoRecord) string { return r.Org }),
		}
	case "city":
		// The last subdivision is the smallest.
		return append(country,
			textField("geoip_city_name", func(r *geoRecord) string { return r.City.Names.English }),
			textField("geoip_postal_code", func(r *geoRecord) string { return r.Postal.Code }),
			textField("geoip_timezone", func(r *geoRecord) string { return r.Location.TimeZone }),
			placeField("geoip_location_latitude", func(r *geoRecord) float64 { return r.Location.Latitude }),
			placeField("geoip_location_longitude", func(r *geoRecord) float64 { return r.Location.Longitude }),
			textField("geoip_subdivision_name", func(r *geoRecord) string {
				if n := len(r.Subdivisions); n > 0 {
					return r.Subdivisions[n-1].Names.English
				}
				return ""
			}),
			textField("geoip_subdivision_code", func(r *geoRecord) string {
				if n := len(r.Subdivisions); n > 0 {
					return r.Subdivisions[n-1].Code
				}
				return ""
			}),
		)
	}
	return nil
}

// geoIPStage extracts the data that a database contains about an IP address.
type geoIPStage struct {
	db       *geoDB
	source   int
	slots    []int // of the fields, followed by the custom lookups
	fields   []geoField
	searches []jmespath.JMESPath

	mu    sync.RWMutex
	known map[uintptr][]value // by the offset of the record
}

// maxGeoKnown is the maximum number of cached records.
const maxGeoKnown = 10_000

func (a *GeoIPArguments) compile(c *compiler) (stage, error) {
	s := &geoIPStage{known: map[uintptr][]value{}}
	for _, f := range geoFields(a.DBType) {
		if slot := c.wanted(f.name); slot >= 0 {
			s.slots, s.fields = append(s.slots, slot), append(s.fields, f)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(a.CustomLookups)) {
		slot := c.wanted(name)
		if slot < 0 {
			continue
		}
		e, err := jmespath.Compile(a.lookup(name))
		if err != nil {
			return nil, err
		}
		s.slots, s.searches = append(s.slots, slot), append(s.searches, e)
	}
	s.source = c.read(a.Source)
	var err error
	if s.db, err = c.mem.geo.open(a.DB); err != nil {
		return nil, err
	}
	c.pl.geo = append(c.pl.geo, s.db)
	return s, nil
}

func (s *geoIPStage) run(_ context.Context, p *pass) {
	if len(s.slots) == 0 {
		return
	}
	for _, r := range p.rows {
		in, ok := p.source(s.source, r)
		if !ok {
			continue
		}
		ip, err := netip.ParseAddr(in)
		if err != nil || ip.Zone() != "" {
			continue
		}
		for i, v := range s.lookup(net.IP(ip.Unmap().AsSlice())) {
			if v.kind != unset {
				p.set(s.slots[i], r, v)
			}
		}
	}
}

// lookup returns the values for an address, nil if the database has no record for
// it.
func (s *geoIPStage) lookup(ip net.IP) []value {
	at, err := s.db.LookupOffset(ip)
	if err != nil || at == maxminddb.NotFound {
		return nil
	}
	s.mu.RLock()
	vs, ok := s.known[at]
	s.mu.RUnlock()
	if ok {
		return vs
	}
	vs = s.decode(at)
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.known) >= maxGeoKnown {
		clear(s.known)
	}
	s.known[at] = vs
	return vs
}

func (s *geoIPStage) decode(at uintptr) []value {
	vs := make([]value, 0, len(s.slots))
	if len(s.fields) > 0 {
		var r geoRecord
		if s.db.Decode(at, &r) != nil {
			r = geoRecord{} // the database is of another type
		}
		for _, f := range s.fields {
			vs = append(vs, f.of(&r))
		}
	}
	if len(s.searches) > 0 {
		var r any
		if s.db.Decode(at, &r) != nil {
			r = nil
		}
		for _, e := range s.searches {
			vs = append(vs, fromLookup(e, r))
		}
	}
	return vs
}

// fromLookup returns the extracted value for the result of an expression.
func fromLookup(e jmespath.JMESPath, record any) value {
	found, err := e.Search(record)
	if err != nil {
		return value{}
	}
	switch v := found.(type) {
	case nil:
		return value{}
	case uint64:
		return value{number, strconv.FormatUint(v, 10)}
	case int:
		return value{number, strconv.Itoa(v)}
	case float32:
		return value{number, strconv.FormatFloat(float64(v), 'f', -1, 32)}
	}
	return fromSearch(found)
}
