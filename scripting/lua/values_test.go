package lua_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/hostiletest"
	"github.com/weir-run/weir/scripting/lua"
)

// TestSharedDefinition: a definition of a few tables that are within each other
// many times over is an error, and does not take for ever to read.
func TestSharedDefinition(t *testing.T) {
	child := hostiletest.NewChild(t, "TestSharedDefinitionInChild")
	child.Run(t, []byte("list"))
	child.Run(t, []byte("map"))
}

func TestSharedDefinitionInChild(t *testing.T) {
	hostiletest.Serve(t, func(t testing.TB) func([]byte) error {
		return func(data []byte) error {
			wrap := map[string]string{"list": "{ x, x }", "map": "{ a = x, b = x }"}[string(data)]
			_, err := lua.New().Compile(scripting.File{Name: "x.lua", Text: `local weir = require "weir"
				local x = {}
				for i = 1, 60 do x = ` + wrap + ` end
				return weir.transform { metrics = function() end, args = x }`}, scripting.Env{})
			if err == nil || !strings.Contains(err.Error(), "limit exceeded") {
				return fmt.Errorf("got %v", err)
			}
			return nil
		}
	})
}
