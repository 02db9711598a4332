package redis

import (
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/database"
	"github.com/weir-run/weir/engine/httpclient"
)

// Arguments of remote.redis.
type Arguments struct {
	// Host and port of the server, or the absolute path of its Unix socket.
	Address string `alloy:"address,attr,optional"`
	// Number of the database.
	DB int `alloy:"db,attr,optional"`
	// User name to authenticate with (Redis 6 or later).
	Username string `alloy:"username,attr,optional"`
	// Password to authenticate with.
	Password component.Secret `alloy:"password,attr,optional"`
	// Separator of the parts of keys in Redis. In the prefix, the keys and the exports,
	// parts are always separated by slashes: with ":", /app/db is the key app:db.
	Separator string `alloy:"separator,attr,optional"`

	Database database.Arguments `alloy:",squash"`

	// TLS settings. With this block, also if it is empty, connections use TLS.
	TLSConfig *httpclient.TLSConfig `alloy:"tls_config,block,optional"`
}

// SetToDefault sets the defaults.
func (a *Arguments) SetToDefault() {
	*a = Arguments{Address: "127.0.0.1:6379", Separator: "/"}
	a.Database.SetToDefault()
}

// Validate returns all errors in the arguments, joined.
func (a *Arguments) Validate() error {
	var errs []error
	if _, _, err := net.SplitHostPort(a.Address); err != nil && !strings.HasPrefix(a.Address, "/") {
		errs = append(errs, fmt.Errorf("address %q is neither a host with a port, such as redis.example.com:6379, nor the absolute path of a socket", a.Address))
	}
	if a.DB < 0 {
		errs = append(errs, errors.New("db must not be negative"))
	}
	if a.Separator == "" {
		errs = append(errs, errors.New("separator must not be empty"))
	}
	if a.Username != "" && a.Password == "" {
		errs = append(errs, errors.New("username needs password"))
	}
	if a.TLSConfig != nil {
		errs = append(errs, a.TLSConfig.Check())
	}
	return errors.Join(append(errs, a.Database.Validate())...)
}
