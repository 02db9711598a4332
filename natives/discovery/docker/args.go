package docker

import (
	"errors"
	"fmt"
	"net/url"
	"reflect"
	"time"

	"github.com/weir-run/weir/engine/httpclient"
)

// Arguments of discovery.docker.
type Arguments struct {
	// Address of the Docker daemon, such as unix:///var/run/docker.sock or
	// https://docker.example.com:2376.
	Host string `alloy:"host,attr"`
	// Port of containers that expose no port.
	Port int `alloy:"port,attr,optional"`
	// Host name of containers that use the host's network.
	HostNetworkingHost string `alloy:"host_networking_host,attr,optional"`
	// How often the containers are listed.
	RefreshInterval time.Duration `alloy:"refresh_interval,attr,optional"`
	// Filters for containers, like those of `docker ps --filter`.
	Filters []Filter `alloy:"filter,block,optional"`
	// Whether a container in several networks becomes only one target per port, with the
	// address in the network whose name sorts first.
	MatchFirstNetwork bool `alloy:"match_first_network,attr,optional"`

	Client httpclient.Arguments `alloy:",squash"`
}

// Filter is a condition of `docker ps --filter`.
type Filter struct {
	// Name of the filter, such as label, name, network or status.
	Name string `alloy:"name,attr"`
	// Values, at least one of which must match. For the filter label, all of them must
	// match.
	Values []string `alloy:"values,attr"`
}

// SetToDefault sets the defaults of Alloy.
func (a *Arguments) SetToDefault() {
	*a = Arguments{Port: 80, HostNetworkingHost: "localhost", RefreshInterval: time.Minute, MatchFirstNetwork: true}
	a.Client.SetToDefault()
}

// Validate returns all errors in the arguments, joined.
func (a *Arguments) Validate() error {
	var errs []error
	add := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	switch u, err := url.Parse(a.Host); {
	case err != nil:
		add("host: %w", err)
	case u.Scheme == "":
		add("host %q needs a scheme, such as unix:///var/run/docker.sock", a.Host)
	case u.Host+u.Path+u.Opaque == "":
		add("host %q says nothing behind its scheme", a.Host)
	case u.Scheme != "http" && u.Scheme != "https" && !a.plainClient():
		add("host %q is not reached by the HTTP client: authentication, TLS, proxy and the like have no effect, "+
			"remove them or write an http:// or https:// address", a.Host)
	}
	for _, f := range a.Filters {
		if f.Name == "" {
			add("filter: name must not be empty")
		}
	}
	if a.Port < 0 || a.Port > 65535 {
		add("port must be from 0 to 65535, not %d", a.Port)
	}
	if a.RefreshInterval <= 0 {
		add("refresh_interval is %s, must be greater than 0", a.RefreshInterval)
	}
	return errors.Join(append(errs, a.Client.Validate())...)
}

// plainClient reports whether no setting of the HTTP client is set.
func (a *Arguments) plainClient() bool {
	var plain httpclient.Arguments
	plain.SetToDefault()
	return reflect.DeepEqual(plain, a.Client)
}
