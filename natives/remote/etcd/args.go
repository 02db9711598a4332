package etcd

import (
	"errors"
	"fmt"
	"net/url"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/database"
	"github.com/weir-run/weir/engine/httpclient"
)

// Arguments of remote.etcd.
type Arguments struct {
	// URLs of members of the cluster. All begin with http://, or all with https://.
	Endpoints []string `alloy:"endpoints,attr,optional"`
	// User name to authenticate with.
	Username string `alloy:"username,attr,optional"`
	// Password to authenticate with.
	Password component.Secret `alloy:"password,attr,optional"`

	Database database.Arguments `alloy:",squash"`

	// TLS settings of connections to https:// endpoints.
	TLSConfig *httpclient.TLSConfig `alloy:"tls_config,block,optional"`
}

// SetToDefault sets the defaults.
func (a *Arguments) SetToDefault() {
	*a = Arguments{Endpoints: []string{"http://127.0.0.1:2379"}}
	a.Database.SetToDefault()
}

// Validate returns all errors in the arguments, joined.
func (a *Arguments) Validate() error {
	var errs []error
	if len(a.Endpoints) == 0 {
		errs = append(errs, errors.New("endpoints must not be empty"))
	}
	schemes := map[string]bool{}
	for _, e := range a.Endpoints {
		u, err := url.Parse(e)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			errs = append(errs, fmt.Errorf("endpoints: %q is not a URL such as https://etcd.example.com:2379", component.HideURLs(e)))
			continue
		}
		if u.User != nil {
			errs = append(errs, errors.New("endpoints: write the user name and the password in username and password, not in the URL"))
		}
		schemes[u.Scheme] = true
	}
	if len(schemes) > 1 {
		errs = append(errs, errors.New("endpoints must all begin with http://, or all with https://"))
	}
	if (a.Username == "") != (a.Password == "") {
		errs = append(errs, errors.New("username and password must be set together"))
	}
	if a.TLSConfig != nil {
		errs = append(errs, a.TLSConfig.Check())
		if schemes["http"] {
			errs = append(errs, errors.New("tls_config needs endpoints that begin with https://"))
		}
	}
	return errors.Join(append(errs, a.Database.Validate())...)
}
