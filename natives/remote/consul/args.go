package consul

import (
	"errors"
	"fmt"
	"strings"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/database"
	"github.com/weir-run/weir/engine/httpclient"
)

// Arguments of remote.consul.
type Arguments struct {
	// Host and port of the Consul API.
	Server string `alloy:"server,attr,optional"`
	// Scheme of the API, http or https.
	Scheme string `alloy:"scheme,attr,optional"`
	// Token to access the API with.
	Token component.Secret `alloy:"token,attr,optional"`
	// Datacenter to read from. Default: the datacenter of the server.
	Datacenter string `alloy:"datacenter,attr,optional"`
	// Namespace to read from (Consul Enterprise).
	Namespace string `alloy:"namespace,attr,optional"`
	// Admin partition to read from (Consul Enterprise).
	Partition string `alloy:"partition,attr,optional"`
	// Whether any server may answer, which is cheaper than asking the leader, and also
	// works while there is none.
	AllowStale bool `alloy:"allow_stale,attr,optional"`

	Database database.Arguments   `alloy:",squash"`
	Client   httpclient.Arguments `alloy:",squash"`
}

// SetToDefault sets the defaults, which are those of discovery.consul.
func (a *Arguments) SetToDefault() {
	*a = Arguments{Server: "localhost:8500", Scheme: "http", AllowStale: true}
	a.Database.SetToDefault()
	a.Client.SetToDefault()
}

// Validate returns all errors in the arguments, joined.
func (a *Arguments) Validate() error {
	var errs []error
	if strings.TrimSpace(a.Server) == "" {
		errs = append(errs, errors.New("server must not be empty"))
	}
	if a.Scheme != "http" && a.Scheme != "https" {
		errs = append(errs, fmt.Errorf(`scheme must be "http" or "https", not %q`, a.Scheme))
	}
	if a.Token != "" && (a.Client.Authorization != nil || a.Client.OAuth2 != nil || a.Client.BearerToken != "" || a.Client.BearerTokenFile != "") {
		errs = append(errs, errors.New("at most one of token, authorization, oauth2, bearer_token and bearer_token_file may be set"))
	}
	return errors.Join(append(errs, a.Database.Validate(), a.Client.Validate())...)
}
