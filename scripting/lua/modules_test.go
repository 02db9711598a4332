package lua_test

import "github.com/weir-run/weir/stdlib"

var modules = stdlib.Modules()
