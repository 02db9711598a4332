package config_test

import (
	"slices"
	"testing"

	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/config"
)

// opaque is a capsule, such as a receiver, whose fields may change at any time.
type opaque struct {
	Key component.Secret `alloy:"key,attr"`
}

func (*opaque) AlloyCapsule() {}

func TestSecrets(t *testing.T) {
	type inner struct {
		Key component.Secret `alloy:"key,attr"`
	}
	type arguments struct {
		Plain  string                      `alloy:"plain,attr"`
		Secret component.Secret            `alloy:"secret,attr"`
		Unset  component.Secret            `alloy:"unset,attr"`
		Maybe  component.OptionalSecret    `alloy:"maybe,attr"`
		Public component.OptionalSecret    `alloy:"public,attr"`
		Block  *inner                      `alloy:"block,block"`
		Absent *inner                      `alloy:"absent,block"`
		Blocks []inner                     `alloy:"blocks,block"`
		Any    map[string]any              `alloy:"any,attr"`
		Map    map[string]component.Secret `alloy:"map,attr"`
		Lists  map[string][]string         `alloy:"lists,attr"`
		Opaque []*opaque                   `alloy:"opaque,attr"`
	}
	var got []string
	config.Secrets(&arguments{
		Plain: "no", Secret: "s1", Maybe: component.OptionalSecret{IsSecret: true, Value: "s2"}, Public: component.OptionalSecret{Value: "no"},
		Block: &inner{"s3"}, Blocks: []inner{{"s4"}, {"s5"}}, Any: map[string]any{"a": []any{component.Secret("s6"), "no", 1}},
		Map: map[string]component.Secret{"a": "s7"}, Lists: map[string][]string{"a": {"no"}}, Opaque: []*opaque{{Key: "no"}},
	}, func(s string) { got = append(got, s) })
	if want := []string{"s1", "s2", "s3", "s4", "s5", "s6", "s7"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	config.Secrets(nil, func(s string) { t.Errorf("nil has %q", s) })
}
