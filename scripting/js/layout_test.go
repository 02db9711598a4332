package js

import (
	"errors"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/dop251/goja"
	"github.com/dop251/goja/unistring"
)

// TestLayout: the copies hold for the goja that weir is built with.
func TestLayout(t *testing.T) {
	if err := boundable(); err != nil {
		t.Error(err)
	}
	if objectTab == nil || arrayTab == nil || intTab == nil || floatTab == nil || asciiTab == nil || boolTab == nil {
		t.Error("scripts run more slowly, because goja makes all of their values")
	}
}

// TestWrongLayout: a goja that is laid out differently is an error of scripts,
// and not weir's end.
func TestWrongLayout(t *testing.T) {
	f := func(want string, look func(*gojaLayout)) {
		t.Helper()
		err := layoutError(func() error { look(theLayout()); return nil })
		if err == nil || !strings.Contains(err.Error(), "cannot run JavaScript") || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	f("goja.Object has no nothing any more", func(l *gojaLayout) { l.field(reflect.TypeFor[goja.Object](), "nothing") })
	f("has no self any more", func(l *gojaLayout) { l.kind(reflect.TypeFor[struct{ self int }](), "self", reflect.Interface) })
	f("has no mapEntry any more", func(l *gojaLayout) { l.named(reflect.TypeFor[entry](), "mapEntry") })
	f("has no value any more", func(l *gojaLayout) {
		l.same(reflect.TypeFor[property](), reflect.TypeFor[struct{ value string }](), nil)
	})
	f("has no getter any more", func(l *gojaLayout) { // elsewhere
		l.same(reflect.TypeFor[property](), reflect.TypeFor[struct {
			value                                        goja.Value
			writable, configurable, enumerable, accessor bool
			_                                            int
			getter, setter                               *goja.Object
		}](), nil)
	})
	type baseObject struct {
		class string
		val   int
	}
	type proxyObject struct{ baseObject }
	_ = proxyObject{baseObject{class: "", val: 0}} // staticcheck does not see what reflect reads
	f("has no val any more", func(l *gojaLayout) { l.newKind(reflect.TypeFor[struct{ baseObject }]()) })
	f("has no target any more", func(l *gojaLayout) { l.newKind(reflect.TypeFor[proxyObject]()) })
	type wrapper regexp.Regexp
	f("has no standard any more", func(l *gojaLayout) { l.patternLayout(reflect.TypeFor[struct{ pattern *int }]()) })
	f("has no pattern any more", func(l *gojaLayout) {
		l.patternLayout(reflect.TypeFor[struct {
			pattern  int
			standard bool
		}]())
	})
	f("has no sticky any more", func(l *gojaLayout) {
		l.patternLayout(reflect.TypeFor[struct {
			pattern *struct {
				global        bool
				regexpWrapper *wrapper
			}
			standard bool
		}]())
	})
	f("has no regexp.Regexp any more", func(l *gojaLayout) {
		l.patternLayout(reflect.TypeFor[struct {
			pattern *struct {
				global, sticky bool
				regexpWrapper  *unistring.String
			}
			standard bool
		}]())
	})
	if err := layoutError(func() error { return errors.New("interfaces differ") }); err == nil || !strings.Contains(err.Error(), "interfaces differ") {
		t.Errorf("got %v", err)
	}
}

// TestWrongHosted: objects are goja's own if it lays them out differently.
func TestWrongHosted(t *testing.T) {
	o := engine.NewDynamicObject(&box{})
	if !mirrors(o, reflect.TypeFor[goja.DynamicObject]()) {
		t.Error("an object that we mirror has another layout")
	}
	if mirrors(o, reflect.TypeFor[goja.DynamicArray]()) || mirrors(engine.NewObject(), reflect.TypeFor[goja.DynamicObject]()) || mirrors(engine.NewDynamicArray(nil), reflect.TypeFor[goja.DynamicObject]()) {
		t.Error("something else is an object that we mirror")
	}
	if fieldAt(reflect.TypeFor[objectBody](), "prototype", 0, reflect.TypeFor[*goja.Object]()) || fieldAt(reflect.TypeFor[objectBody](), "nothing", 0, reflect.TypeFor[*goja.Object]()) {
		t.Error("a field is where it is not")
	}
}
