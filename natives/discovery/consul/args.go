package consul

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/httpclient"
)

// Arguments of discovery.consul.
type Arguments struct {
	// Host and port of the Consul API.
	Server string `alloy:"server,attr,optional"`
	// Token to access the API with.
	Token component.Secret `alloy:"token,attr,optional"`
	// Datacenter to query. Default: the datacenter of the server.
	Datacenter string `alloy:"datacenter,attr,optional"`
	// Namespace to query (Consul Enterprise).
	Namespace string `alloy:"namespace,attr,optional"`
	// Admin partition to query (Consul Enterprise).
	Partition string `alloy:"partition,attr,optional"`
	// Separator of the tags in __meta_consul_tags.
	TagSeparator string `alloy:"tag_separator,attr,optional"`
	// Scheme of the API, http or https.
	Scheme string `alloy:"scheme,attr,optional"`
	// User name to access the API with; the same as in basic_auth.
	Username string `alloy:"username,attr,optional"`
	// Password to access the API with; the same as in basic_auth.
	Password component.Secret `alloy:"password,attr,optional"`
	// Whether any server may answer, which is cheaper than asking the leader.
	AllowStale bool `alloy:"allow_stale,attr,optional"`
	// Services whose instances become targets. Default: all.
	Services []string `alloy:"services,attr,optional"`
	// Tags that a service must have, all of them.
	Tags []string `alloy:"tags,attr,optional"`
	// Metadata that the node of an instance must have. With Consul 1.14 or later, prefer
	// filter.
	NodeMeta map[string]string `alloy:"node_meta,attr,optional"`
	// Interval between two identical queries.
	RefreshInterval time.Duration `alloy:"refresh_interval,attr,optional"`
	// Filter expression for the catalog of services.
	Filter string `alloy:"filter,attr,optional"`
	// Filter expression for the instances of a service.
	HealthFilter string `alloy:"health_filter,attr,optional"`

	Client httpclient.Arguments `alloy:",squash"`
}

// SetToDefault sets the defaults of Alloy.
func (a *Arguments) SetToDefault() {
	*a = Arguments{
		Server:          "localhost:8500",
		TagSeparator:    ",",
		Scheme:          "http",
		AllowStale:      true,
		RefreshInterval: 30 * time.Second,
	}
	a.Client.SetToDefault()
}

// Validate returns all errors in the arguments, joined.
func (a *Arguments) Validate() error {
	var errs []error
	add := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if strings.TrimSpace(a.Server) == "" {
		add("server must not be empty")
	}
	if a.Scheme != "http" && a.Scheme != "https" {
		add(`scheme must be "http" or "https", not %q`, a.Scheme)
	}
	if a.RefreshInterval <= 0 {
		add("refresh_interval is %s, must be greater than 0", a.RefreshInterval)
	}
	login := a.Username != "" || a.Password != ""
	if login && a.Client.BasicAuth != nil {
		add("at most one of basic_auth and username with password may be set")
	}
	if login && (a.Client.Authorization != nil || a.Client.OAuth2 != nil || a.Client.BearerToken != "" || a.Client.BearerTokenFile != "") {
		add("at most one of username with password and another way to authenticate may be set")
	}
	if a.Token != "" && (a.Client.Authorization != nil || a.Client.OAuth2 != nil || a.Client.BearerToken != "" || a.Client.BearerTokenFile != "") {
		add("at most one of token, authorization, oauth2, bearer_token and bearer_token_file may be set")
	}
	return errors.Join(append(errs, a.Client.Validate())...)
}
