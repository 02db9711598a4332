// Command weir-plugin-acme is an example of a plugin in Go.
package main

import (
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/plugin"
	"github.com/weir-run/weir/plugin/examples/go/scale"
)

func main() {
	plugin.Serve(plugin.Options{
		Version:    "v1.0.0",
		Licence:    "Apache-2.0",
		Components: []component.Registration{scale.Registration()},
	})
}
