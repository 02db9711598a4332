package registry

import (
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/scripting/host"
	"github.com/weir-run/weir/scripting/node"
)

// WithOutside returns a catalog of scripts as c, whose components reach what o
// has in place of the real things; c was made by NewCatalog, another is returned
// as it is. It is how tests mock what is outside.
func WithOutside(c component.Catalog, o host.Outside) component.Catalog {
	own, ok := c.(*catalog)
	if !ok {
		return c
	}
	return &outsideCatalog{catalog: own, outside: o}
}

type outsideCatalog struct {
	*catalog
	outside host.Outside
}

func (c *outsideCatalog) Lookup(name string) (component.Registration, bool) {
	r, ok := c.catalog.Lookup(name)
	s := c.catalog.script(name)
	if !ok || s == nil {
		return r, ok
	}
	s.Outside = c.outside
	if s.Outside.LookupEnv == nil {
		s.Outside.LookupEnv = c.catalog.o.Outside.LookupEnv
	}
	r.Build = func(o component.Options, args any, previous component.Component) (component.Component, error) {
		return node.New(&s.Script, o, args, previous)
	}
	if c.outside.GrantAll {
		r.Check = nil
	}
	return r, ok
}
