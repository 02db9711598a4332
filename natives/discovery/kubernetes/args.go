package kubernetes

import (
	"errors"
	"fmt"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/weir-run/weir/engine/httpclient"
)

// Arguments of discovery.kubernetes.
type Arguments struct {
	// Kind of objects to find: node, pod, service, endpoints, endpointslice or
	// ingress.
	Role string `alloy:"role,attr"`
	// URL of the API server. Default: the API server of the cluster in which weir runs,
	// with the service account of the pod.
	APIServer string `alloy:"api_server,attr,optional"`
	// Kubeconfig file to take address and credentials from.
	KubeConfig string `alloy:"kubeconfig_file,attr,optional"`
	// Namespaces to search. Default: all.
	Namespaces Namespaces `alloy:"namespaces,block,optional"`
	// Selectors that limit the objects to request, by role.
	Selectors []Selector `alloy:"selectors,block,optional"`
	// Additional metadata to attach to the targets.
	AttachMetadata AttachMetadata `alloy:"attach_metadata,block,optional"`

	Client httpclient.Arguments `alloy:",squash"`
}

// Namespaces are the namespaces to search.
type Namespaces struct {
	// Whether to search the namespace of the pod in which weir runs.
	OwnNamespace bool `alloy:"own_namespace,attr,optional"`
	// Names of the namespaces.
	Names []string `alloy:"names,attr,optional"`
}

// Selector limits the objects that are requested for a role.
type Selector struct {
	// Role of the objects: the role itself, or pod and service for endpoints and
	// endpointslice, or node for pod.
	Role string `alloy:"role,attr"`
	// Label selector, such as "app=web,tier!=cache".
	Label string `alloy:"label,attr,optional"`
	// Field selector, such as "spec.nodeName=node-7".
	Field string `alloy:"field,attr,optional"`
}

// AttachMetadata selects metadata of other objects that becomes labels of a target.
type AttachMetadata struct {
	// Whether pods, endpoints and endpointslices get the labels and annotations
	// of their node.
	Node bool `alloy:"node,attr,optional"`
	// Whether targets get the labels and annotations of their namespace.
	Namespace bool `alloy:"namespace,attr,optional"`
}

// selectable maps each role to the roles that its selectors may have.
var selectable = map[string][]string{
	"node":          {"node"},
	"pod":           {"pod", "node"},
	"service":       {"service"},
	"endpoints":     {"endpoints", "pod", "service"},
	"endpointslice": {"endpointslice", "pod", "service"},
	"ingress":       {"ingress"},
}

// SetToDefault sets the defaults of Alloy.
func (a *Arguments) SetToDefault() {
	*a = Arguments{}
	a.Client.SetToDefault()
}

// Validate returns all errors in the arguments, joined.
func (a *Arguments) Validate() error {
	var errs []error
	add := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if u, err := url.Parse(a.APIServer); err != nil {
		add("api_server: %w", err)
	} else if a.APIServer != "" && (u.Host == "" || u.Scheme != "http" && u.Scheme != "https") {
		add("api_server %q must be an http:// or https:// address", a.APIServer)
	}
	var plain httpclient.Arguments
	plain.SetToDefault()
	own := !reflect.DeepEqual(plain, a.Client)
	switch {
	case a.APIServer != "" && a.KubeConfig != "":
		add("kubeconfig_file and api_server cannot be set together: remove one of them")
	case a.KubeConfig != "" && own:
		add("the HTTP client's arguments have no effect with kubeconfig_file, which has the credentials: remove them")
	case a.APIServer == "" && own:
		add("the HTTP client's arguments need api_server")
	}
	if a.Namespaces.OwnNamespace && (a.APIServer != "" || a.KubeConfig != "") {
		add("namespaces: own_namespace is of the cluster weir runs in and cannot be used with api_server or kubeconfig_file")
	}
	errs = append(errs, a.selectors())
	return errors.Join(append(errs, a.Client.Validate())...)
}

func (a *Arguments) selectors() error {
	var errs []error
	add := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	may, ok := selectable[a.Role]
	if !ok {
		add("role must be node, pod, service, endpoints, endpointslice or ingress, not %q", a.Role)
	}
	seen := map[string]bool{}
	for _, s := range a.Selectors {
		if seen[s.Role] {
			add("selectors: there are two for the role %s", s.Role)
		}
		seen[s.Role] = true
		if ok && !slices.Contains(may, s.Role) {
			add("selectors: with role = %q a selector may be about %s, not %q", a.Role, strings.Join(may, ", "), s.Role)
		}
		if _, err := fields.ParseSelector(s.Field); err != nil {
			add("selectors: field: %w", err)
		}
		if _, err := labels.Parse(s.Label); err != nil {
			add("selectors: label: %w", err)
		}
	}
	return errors.Join(errs...)
}
