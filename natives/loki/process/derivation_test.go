package process

import (
	"fmt"
	"testing"

	"github.com/weir-run/weir/engine/batch"
)

// TestDerivation: a derived stream has the same handle as long as it is used. It
// is released when it is not used any more or when the original stream ended.
func TestDerivation(t *testing.T) {
	made := 0
	c := &compiler{pl: &pipeline{env: env{mem: newMemory()}}}
	d := c.derive(func(b *batch.Builder, values []value) {
		made++
		b.Set("v", values[0].text)
	})
	s := batch.NewSeries([]batch.Label{{Name: "a", Value: "1"}})
	of := func(v string) *batch.Stream { return d.derive(s, []value{plain(v)}) }
	one, two := of("x"), of("y")
	if one.String() != `{a="1",v="x"}` || two.String() != `{a="1",v="y"}` {
		t.Fatalf("got %s and %s", one, two)
	}
	if of("x") != one || of("y") != two || made != 2 {
		t.Error("not the same handles again")
	}
	if unset := d.derive(s, []value{{}}); unset != s {
		t.Errorf("got %s for what changes nothing", unset)
	}
	for range 4 {
		c.pl.Sweep()
		of("x")
	}
	if one.Released() || !two.Released() || s.Released() {
		t.Error("given back, or not given back")
	}
	if again := of("y"); again == two || again.Released() {
		t.Error("what was given back is still in use")
	}
	s.Release()
	c.pl.Sweep()
	if len(d.varied) != 0 {
		t.Error("a stream that ended is still known")
	}
	other := batch.NewSeries([]batch.Label{{Name: "b", Value: "1"}})
	last := d.derive(other, []value{plain("z")})
	c.pl.Close()
	if !last.Released() || other.Released() {
		t.Error("not given back at the end, or too much")
	}
}

// TestDerivationIsBounded: labels that differ in each line do not exhaust the
// memory.
func TestDerivationIsBounded(t *testing.T) {
	c := &compiler{pl: &pipeline{env: env{mem: newMemory()}}}
	d := c.derive(func(b *batch.Builder, values []value) { b.Set("v", values[0].text) })
	s := batch.NewSeries([]batch.Label{{Name: "a", Value: "1"}})
	first := d.derive(s, []value{plain("first")})
	for i := range maxVariants {
		d.derive(s, []value{plain(fmt.Sprint(i))})
	}
	vs, _ := d.memo.Get(s)
	if !first.Released() || len(vs.by) > maxVariants {
		t.Errorf("%d are remembered", len(vs.by))
	}
	if again := d.derive(s, []value{plain("first")}); again == first || again.String() != first.String() {
		t.Errorf("got %s", again)
	}
}

// TestKeep: a stage takes over the state of an equal stage.
func TestKeep(t *testing.T) {
	first := &compiler{pl: &pipeline{}}
	n := 0
	next := func() *int { n++; v := n; return &v }
	b, a := keepState(first, "same", next), keepState(first, "same", next) // compiled from the last to the first
	other := keepState(first, "other", next)
	second := &compiler{pl: &pipeline{}, old: append([]*state(nil), first.pl.states...)}
	if keepState(second, "same", next) != b || keepState(second, "same", next) != a || keepState(second, "new", next) == other {
		t.Error("another state, or that of another stage")
	}
	if len(second.old) != 1 || *second.old[0].v.(*int) != *other {
		t.Errorf("left are %v", second.old)
	}
}
