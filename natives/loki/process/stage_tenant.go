package process

import (
	"context"
	"errors"

	"github.com/weir-run/weir/engine/batch"
)

// TenantArguments are the arguments of stage.tenant.
type TenantArguments struct {
	// The label that has the tenant.
	Label string `alloy:"label,attr,optional"`
	// The extracted value that is the tenant.
	Source string `alloy:"source,attr,optional"`
	// The tenant.
	Value string `alloy:"value,attr,optional"`
}

// Validate checks that exactly one of the three arguments is set.
func (a *TenantArguments) Validate() error {
	n := 0
	for _, s := range []string{a.Label, a.Source, a.Value} {
		if s != "" {
			n++
		}
	}
	if n != 1 {
		return errors.New("exactly one of label, source and value must be set")
	}
	return nil
}

// tenantLabel is the label from which loki.write takes the tenant of a stream. It
// is not sent.
const tenantLabel = "__tenant_id__"

// tenantStage sets the tenant. A line without a value keeps its tenant.
type tenantStage struct {
	slots   []int // one slot if there is a source
	derived *derivation
}

func (a *TenantArguments) compile(c *compiler) (stage, error) {
	s := &tenantStage{}
	if a.Source != "" {
		s.slots = []int{c.read(a.Source)}
	}
	s.derived = c.derive(func(b *batch.Builder, values []value) {
		tenant := a.Value
		if a.Label != "" {
			tenant = b.Get(a.Label)
		}
		for _, v := range values {
			tenant, _ = v.str()
		}
		if tenant != "" {
			b.Set(tenantLabel, tenant)
		}
	})
	return s, nil
}

func (s *tenantStage) run(_ context.Context, p *pass) { s.derived.apply(p, s.slots) }
