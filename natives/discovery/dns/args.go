package dns

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Arguments of discovery.dns.
type Arguments struct {
	// Names to look up, with the search path and the servers of /etc/resolv.conf.
	Names []string `alloy:"names,attr"`
	// How often the names are looked up.
	RefreshInterval time.Duration `alloy:"refresh_interval,attr,optional"`
	// Type of the records: SRV, A, AAAA, MX or NS.
	Type string `alloy:"type,attr,optional"`
	// Port of the targets. It is required for all types except SRV, whose records
	// contain a port.
	Port int `alloy:"port,attr,optional"`
}

// SetToDefault sets the defaults of Alloy.
func (a *Arguments) SetToDefault() {
	*a = Arguments{RefreshInterval: 30 * time.Second, Type: "SRV"}
}

// Validate returns all errors in the arguments, joined.
func (a *Arguments) Validate() error {
	var errs []error
	add := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if len(a.Names) == 0 {
		add("names must not be empty")
	}
	for _, n := range a.Names {
		if n == "" {
			add("names: a name must not be empty")
		}
	}
	if a.RefreshInterval <= 0 {
		add("refresh_interval is %s, must be greater than 0", a.RefreshInterval)
	}
	switch strings.ToUpper(a.Type) {
	case "SRV":
	case "A", "AAAA", "MX", "NS":
		if a.Port == 0 {
			add("port is needed with type = %q: only SRV records have one", a.Type)
		}
	default:
		add(`type must be "SRV", "A", "AAAA", "MX" or "NS", not %q`, a.Type)
	}
	if a.Port < 0 || a.Port > 65535 {
		add("port must be from 1 to 65535, not %d", a.Port)
	}
	return errors.Join(errs...)
}
