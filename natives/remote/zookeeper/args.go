package zookeeper

import (
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/database"
	"github.com/weir-run/weir/engine/httpclient"
)

// Arguments of remote.zookeeper.
type Arguments struct {
	// Hosts and ports of the servers of the ensemble.
	Servers []string `alloy:"servers,attr,optional"`
	// Time after which the ensemble forgets a client that it does not hear from.
	SessionTimeout time.Duration `alloy:"session_timeout,attr,optional"`
	// User name to authenticate with, by the scheme digest.
	Username string `alloy:"username,attr,optional"`
	// Password to authenticate with.
	Password component.Secret `alloy:"password,attr,optional"`

	Database database.Arguments `alloy:",squash"`

	// TLS settings. With this block, also if it is empty, connections use TLS.
	TLSConfig *httpclient.TLSConfig `alloy:"tls_config,block,optional"`
}

// SetToDefault sets the defaults.
func (a *Arguments) SetToDefault() {
	*a = Arguments{Servers: []string{"127.0.0.1:2181"}, SessionTimeout: 10 * time.Second}
	a.Database.SetToDefault()
}

// Validate returns all errors in the arguments, joined.
func (a *Arguments) Validate() error {
	var errs []error
	if len(a.Servers) == 0 {
		errs = append(errs, errors.New("servers must not be empty"))
	}
	for _, s := range a.Servers {
		if host, port, err := net.SplitHostPort(s); err != nil || host == "" || port == "" {
			errs = append(errs, fmt.Errorf("servers: %q is not a host with a port, such as zk1.example.com:2181", s))
		}
	}
	if a.SessionTimeout < time.Second {
		errs = append(errs, fmt.Errorf("session_timeout is %s, must be at least 1s", a.SessionTimeout))
	}
	if (a.Username == "") != (a.Password == "") {
		errs = append(errs, errors.New("username and password must be set together"))
	}
	if a.TLSConfig != nil {
		errs = append(errs, a.TLSConfig.Check())
	}
	return errors.Join(append(errs, a.Database.Validate())...)
}
