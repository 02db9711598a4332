package component

import "github.com/grafana/alloy/syntax/alloytypes"

// Secret is a string of the config language that is never shown.
type Secret = alloytypes.Secret

// OptionalSecret is a string that may be secret: an argument that takes secrets
// and plain strings, or an export whose is_secret decides.
type OptionalSecret = alloytypes.OptionalSecret
