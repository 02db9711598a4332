package engine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/weir-run/weir/engine"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/service"
)

// fakeService is a service with a block.
type fakeService struct {
	l      *harness
	def    service.Definition
	update func(a *arguments) error
	run    func(ctx context.Context) error
	host   service.Host
}

func (s *fakeService) Definition() service.Definition { return s.def }

func (s *fakeService) Run(ctx context.Context, host service.Host) error {
	s.host = host
	s.l.event("run service %s", s.def.Name)
	if s.run != nil {
		if err := s.run(ctx); err != nil {
			return err
		}
	}
	<-ctx.Done()
	s.l.event("stop service %s", s.def.Name)
	return nil
}

func (s *fakeService) Update(config any) error {
	value := "nothing"
	if a, ok := config.(*arguments); ok {
		value = fmt.Sprintf("%q", a.Value)
		if s.update != nil {
			if err := s.update(a); err != nil {
				return err
			}
		}
	}
	s.l.event("update service %s with %s", s.def.Name, value)
	return nil
}

func (s *fakeService) Data() any { return "data of " + s.def.Name }

func (l *harness) service(name, block string, deps ...string) *fakeService {
	s := &fakeService{l: l, def: service.Definition{Name: name, Block: block, DependsOn: deps}}
	if block != "" {
		s.def.NewConfig = func() any { return &arguments{Value: "default"} }
	}
	l.services = append(l.services, s)
	return s
}

func TestServices(t *testing.T) {
	bubble(t, func(l *harness) {
		one := l.service("one", "one_block", "two")
		l.service("two", "")
		l.catalog.add(component.Registration{Name: "test.needs", NeedsServices: []string{"one"}})
		l.onBuild = func(id string, _ *arguments, o component.Options) error {
			if data, err := o.Service("one"); id == "test.needs.a" && (err != nil || data != "data of one") {
				t.Errorf("got service %v, %v", data, err)
			}
			if _, err := o.Service("two"); err == nil {
				t.Error("got a service that was not asked for")
			}
			return nil
		}
		l.start(`
one_block {
  value = test.uvalue.v.value
}
test.uvalue "v" {
  value = "first"
}
test.needs "a" { }`)
		got := l.takeEvents()
		want := `update service two with nothing
update service one with "default"
build test.uvalue.v
update service one with "first"
build test.needs.a
run service one
run service two
run test.needs.a
run test.uvalue.v`
		if got := ordered(got); got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
		if got := fmt.Sprint(one.host.GetServiceConsumers("one")); got != "[test.needs.a]" {
			t.Errorf("consumers of one: %s", got)
		}
		l.fake("test.uvalue.v").o.Export(valueExports{Value: "second"})
		synctest.Wait()
		l.wantEvents("update service one with \"second\"")
		if i := l.e.Overview().Services[1]; i.ID != "one" || i.Health.State != component.Healthy || i.Arguments.(*arguments).Value != "second" {
			t.Errorf("got %+v", i)
		}
		one.update = func(a *arguments) error {
			if a.Value == "third" {
				return errors.New("three is too many")
			}
			return nil
		}
		l.fake("test.uvalue.v").o.Export(valueExports{Value: "third"})
		synctest.Wait()
		l.wantEvents("")
		if i := l.e.Overview().Services[1]; i.Health.State != component.Unhealthy || !strings.Contains(i.Health.Message, "three is too many") || i.Arguments.(*arguments).Value != "second" {
			t.Errorf("got %+v", i)
		}
		// Without its block, it gets the defaults.
		if err := l.reload("test.needs \"a\" { }"); err != nil {
			t.Fatal(err)
		}
		if got, want := ordered(l.takeEvents()), "update service one with \"default\"\nstop test.uvalue.v"; got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
		l.end()
		l.wantEvents("stop test.needs.a\nstop service one\nstop service two")
	})
}

// TestServiceFails: at start it ends the engine, later it is unhealthy.
func TestServiceFails(t *testing.T) {
	bubble(t, func(l *harness) {
		l.service("one", "one_block")
		two := l.service("two", "two_block", "one")
		two.update = func(*arguments) error { return errors.New("port is taken") }
		l.start(`test.source "a" { }`)
		if err := l.end(); err == nil || err.Error() != "cannot start two: port is taken" {
			t.Errorf("got %v", err)
		}
		if got, want := ordered(l.takeEvents()), "update service one with \"default\"\nrun service one\nrun service two\nstop service one\nstop service two"; got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	})
	bubble(t, func(l *harness) {
		one := l.service("one", "")
		fail := make(chan struct{})
		one.run = func(ctx context.Context) error {
			<-fail
			panic("oh no")
		}
		l.start(`test.source "a" { }`)
		close(fail)
		synctest.Wait()
		if i := l.e.Overview().Services[0]; i.Health.State != component.Unhealthy || i.Health.Message != "panicked: oh no" {
			t.Errorf("got %+v", i.Health)
		}
		l.wantHealth("test.source.a", component.Healthy, "")
	})
}

func TestNewRefuses(t *testing.T) {
	l := newHarness(t)
	f := func(want string, defs ...service.Definition) {
		t.Helper()
		var svcs []service.Service
		for _, d := range defs {
			svcs = append(svcs, &fakeService{l: l, def: d})
		}
		if _, err := engine.New(engine.Options{Services: svcs}); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	f("BUG: service a is listed twice", service.Definition{Name: "a"}, service.Definition{Name: "a"})
	f("BUG: service a needs b, which is not there", service.Definition{Name: "a", DependsOn: []string{"b"}})
	f("BUG: services depend on each other: dependency cycle: a → b → a", service.Definition{Name: "a", DependsOn: []string{"b"}}, service.Definition{Name: "b", DependsOn: []string{"a"}})
}
