package registry

import (
	"fmt"
	"strings"

	"github.com/weir-run/weir/engine/component"
)

// Removed returns the registration of a script whose file is gone, if its history has a
// version. The last good version runs until the file is back.
func (c *catalog) Removed(name string) (component.Registration, bool) {
	if c.dir == "" || c.o.Versions == nil || c.o.Versions.ReadOnly() || !c.o.LastGood || !strings.HasPrefix(name, c.prefix) {
		return component.Registration{}, false
	}
	r := c.o.Versions.Get(name, c.dir)
	if len(r.Versions) == 0 {
		return component.Registration{}, false
	}
	deps := &dependencies{c: c}
	file := r.Versions[len(r.Versions)-1].Sources[0].Path
	deps.candidate(file)
	d := &onDisk{sources: deps.sources()}
	c.setOnDisk(name, d)
	return component.Registration{
		Name: name, Sources: d.sources,
		Err:     fmt.Errorf("component %s is no longer there: %s is gone", name, c.display(location{rel: file})),
		Instead: func(node string) *component.Registration { return c.instead(name, d, node) },
	}, true
}

var _ component.Historic = (*catalog)(nil)
