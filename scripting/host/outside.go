package host

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weir-run/weir/engine/clock"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/scripting"
	"github.com/weir-run/weir/scripting/egress"
)

// Limits of external data, in bytes: the default, and the maximum that a script
// can set.
const (
	outsideBytes    = 1 << 20
	maxOutsideBytes = scripting.MaxString
	// maxCommandLine limits the total size of a program's arguments, and
	// maxHeaderBytes the headers of a request or a response, and its URL.
	maxCommandLine = 128 << 10
	maxHeaderBytes = 64 << 10
)

// addOutside adds the granted functions of a script to ctx, or all functions
// for the manual, which has no Access.
func addOutside(m *scripting.Module, h *Binding, o *Access) {
	all := o == nil
	if all {
		o = &Access{}
	}
	m.Funcs = append(m.Funcs, secretFunc(h, o))
	if all || o.needs.HTTP {
		m.Tables = append(m.Tables, httpTable(h, o))
	}
	if all || len(o.needs.Env) > 0 {
		m.Tables = append(m.Tables, envTable(o))
	}
	if all || o.needs.Read {
		m.Funcs = append(m.Funcs, readFunc(h, o))
	}
	if all || o.needs.Exec {
		m.Funcs = append(m.Funcs, execFunc(h, o))
	}
	m.Absent = func(name string) string {
		if !slices.Contains(scripting.NeedKinds, name) {
			return ""
		}
		return fmt.Sprintf("cannot use ctx.%s: the script does not declare it; write needs = { %s } in its definition, and grant it in the block's script.allow", name, needExamples[name])
	}
}

var needExamples = map[string]string{"http": "http = true", "env": `env = { "NAME" }`, "read": "read = true", "exec": `exec = { "NAME" }`}

// envTable implements ctx.env.
func envTable(o *Access) *scripting.Module {
	m := &scripting.Module{
		Name: "env",
		Doc: "The environment variables that the script needs and script.allow.env grants. Their values are read when the component is built. " +
			"A variable that is not set is nil.",
		Absent: func(name string) string {
			return fmt.Sprintf(`there is no ctx.env.%s: write needs = { env = { "%s" } } in the script's definition, and grant it in script.allow.env`, name, name)
		},
	}
	for _, name := range o.needs.Env {
		c := scripting.Const{Name: name, Doc: "An environment variable."}
		if v, ok := o.env[name]; ok {
			c.Value = v
		}
		m.Consts = append(m.Consts, c)
	}
	return m
}

// secretFunc implements ctx.secret.
func secretFunc(h *Binding, o *Access) scripting.Function {
	return scripting.Function{
		Name: "secret",
		Doc: "Converts a string to a secret, such as a token from ctx.read or ctx.http. A secret always prints as <secret>, " +
			"and only functions of ctx that accept secrets can use it, as with the secrets in ctx.args.",
		Params: []scripting.Param{{Name: "text", Kind: scripting.KindString, Doc: "The string."}},
		Result: scripting.Result{Kind: scripting.KindAny, Doc: "The secret."},
		Uses: []scripting.Use{{
			Lua: `assert(tostring(ctx.secret("s3cret")) == "<secret>")`,
			JS:  `if (String(ctx.secret("s3cret")) !== "<secret>") throw new Error("it shows");`, Input: "a 1\n", Output: "a 1\n",
		}},
		Fn: func(args []scripting.Value) (scripting.Value, error) {
			o.answered(h.Call(), func() component.Answer { return component.Answer{Kind: component.AnswerSecret, Text: args[0].(string)} })
			return scripting.NewSecret(args[0].(string)), nil
		},
	}
}

// readFunc implements ctx.read.
func readFunc(h *Binding, o *Access) scripting.Function {
	return scripting.Function{
		Name: "read",
		Doc: "Reads a file. It must be a regular file that script.allow.read grants; symbolic links must not lead out of the directory that the pattern names. " +
			"If setup read the file, the component is rebuilt when the file changes.",
		Params: []scripting.Param{
			{Name: "path", Kind: scripting.KindString, Doc: "The absolute path, without . and .."},
			{Name: "options", Kind: scripting.KindMap, Optional: true, Doc: "How.", Fields: []scripting.Param{
				maxBytesParam(),
				{Name: "secret", Kind: scripting.KindBool, Optional: true, Doc: "Returns a secret instead of a string, with trailing white space removed."},
			}},
		},
		Result: scripting.Result{Kind: scripting.KindAny, Doc: "The content of the file.", Fails: true},
		Waits:  true,
		Uses: []scripting.Use{{
			Lua: `local weir = require "weir"
return weir.transform {
  needs = { read = { "/etc/weir/*.txt" } },
  metrics = function(batch, ctx)
    local site, err = ctx.read("/etc/weir/site.txt", { max_bytes = 100 })
    if not site then return ctx.log.warn("no site", { err = err }) end
    batch:set_label("site", site)
  end,
}`,
			JS: `import { defineTransform } from "weir";

export default defineTransform({
  needs: { read: ["/etc/weir/*.txt"] },
  async metrics(batch, ctx) {
    batch.setLabel("site", await ctx.read("/etc/weir/site.txt", { maxBytes: 100 }));
  },
});`,
			TestJS: `files({ "/etc/weir/site.txt": "lab" });
expect(t.metrics("a 1").labelValues("site")).toEqual(["lab"]);`,
			Test: `weir.test.files { ["/etc/weir/site.txt"] = "lab" }
assert.same({ "lab" }, t:metrics("a 1"):label_values("site"))`,
		}},
		Fn: func(args []scripting.Value) (scripting.Value, error) {
			opts, _ := args[1].(*scripting.Map)
			limit, err := maxBytes(opts)
			if err != nil {
				return nil, err
			}
			path := args[0].(string)
			body, err := o.read(path, limit)
			o.recordReading(h.Call(), reading{path, limit}, body)
			secret, _ := option[bool](opts, "secret")
			o.answered(h.Call(), func() component.Answer { return fileAnswer(path, body, err, secret) })
			if err != nil {
				h.Call().OutsideFailed = true
				return nil, err
			}
			if secret {
				return scripting.NewSecret(strings.TrimRight(string(body), " \t\r\n")), nil
			}
			return string(body), nil
		},
	}
}

// reading is a file with the size limit with which it was read.
type reading struct {
	path  string
	limit int64
}

// recordReading records the content of a file that setup has read; body is nil
// if it could not be read.
func (o *Access) recordReading(k *Call, r reading, body []byte) {
	if !k.Setup {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.seen == nil {
		o.seen = map[reading][32]byte{}
	}
	o.seen[r] = sha256.Sum256(body)
}

// Changed reports whether a file differs from the one that setup has read.
func (o *Access) Changed() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	for r, hash := range o.seen {
		body, _ := o.read(r.path, r.limit)
		if sha256.Sum256(body) != hash {
			return true
		}
	}
	return false
}

// execFunc implements ctx.exec.
func execFunc(h *Binding, o *Access) scripting.Function {
	return scripting.Function{
		Name: "exec",
		Doc: "Runs a program that script.allow.exec grants and waits for it. It runs without a shell in the root directory, and its environment contains only PATH and LC_ALL. " +
			"If it exceeds script.limits.wait or writes too much, it is killed together with all its child processes.",
		Params: []scripting.Param{
			{Name: "command", Kind: scripting.KindString, Doc: "The program: its name, or its absolute path."},
			{Name: "args", Kind: scripting.KindList, Of: &scripting.Param{Kind: scripting.KindString}, Optional: true, Doc: "The arguments, passed without changes."},
			{Name: "options", Kind: scripting.KindMap, Optional: true, Doc: "How.", Fields: []scripting.Param{
				{Name: "stdin", Kind: scripting.KindAny, Optional: true, Doc: "The standard input: a string or a secret."},
				timeoutParam(),
				maxBytesParam(),
			}},
		},
		Result: scripting.Result{Kind: scripting.KindMap, Fails: true, Doc: "The result. A non-zero exit code is not an error.", Fields: []scripting.Param{
			{Name: "code", Kind: scripting.KindInt, Doc: "The exit code."},
			{Name: "stdout", Kind: scripting.KindString, Doc: "The standard output."},
			{Name: "stderr", Kind: scripting.KindString, Doc: "The standard error output."},
			{Name: "seconds", Kind: scripting.KindNumber, Doc: "The duration."},
		}},
		Waits: true,
		Uses: []scripting.Use{{
			Lua: `local weir = require "weir"
return weir.transform {
  needs = { exec = { "hostid" } },
  metrics = function(batch, ctx)
    local out = assert(ctx.exec("hostid", {}, { timeout = "2s" }))
    if out.code ~= 0 then return ctx.log.warn("hostid failed", { err = out.stderr }) end
    batch:set_label("id", out.stdout)
  end,
}`,
			JS: `import { defineTransform } from "weir";

export default defineTransform({
  needs: { exec: ["hostid"] },
  async metrics(batch, ctx) {
    const out = await ctx.exec("hostid", [], { timeout: "2s" });
    if (out.code !== 0) return ctx.log.warn("hostid failed", { err: out.stderr });
    batch.setLabel("id", out.stdout);
  },
});`,
			TestJS: `exec({ hostid: { code: 0, stdout: "007f0101" } });
expect(t.metrics("a 1").labelValues("id")).toEqual(["007f0101"]);`,
			Test: `weir.test.exec { hostid = { code = 0, stdout = "007f0101" } }
assert.same({ "007f0101" }, t:metrics("a 1"):label_values("id"))`,
		}},
		Fn: func(args []scripting.Value) (scripting.Value, error) {
			opts, _ := args[2].(*scripting.Map)
			out, err := o.exec(h, args[0].(string), args[1], opts)
			if o.outcomes != nil {
				o.outcomes.command(err)
			}
			return out, err
		},
	}
}

func (o *Access) exec(h *Binding, name string, list scripting.Value, opts *scripting.Map) (scripting.Value, error) {
	var args []string
	if l, ok := list.(*scripting.List); ok {
		size := 0
		for _, a := range l.Items {
			if size += len(a.(string)) + 1; size > maxCommandLine {
				return nil, fmt.Errorf("cannot use arguments of more than %d bytes; pass longer data as stdin", maxCommandLine)
			}
			if strings.IndexByte(a.(string), 0) >= 0 {
				return nil, errors.New("cannot use an argument with a zero byte in it")
			}
			args = append(args, a.(string))
		}
	}
	path, err := o.command(name, args)
	if err != nil {
		return nil, err
	}
	c := egress.Command{Path: path, Args: args, SearchPath: defaultPath}
	if c.MaxOutput, err = maxBytes(opts); err != nil {
		return nil, err
	}
	if v, ok := o.lookupEnv("PATH"); ok {
		c.SearchPath = v
	}
	if in, ok := option[scripting.Value](opts, "stdin"); ok {
		if c.Stdin, ok = revealText(in); !ok {
			return nil, errors.New("cannot use this as stdin: it must be a string or a secret")
		}
	}
	run := o.outside.Exec
	if run == nil {
		run = egress.Run
	}
	return o.waitFor(h, opts, func(ctx context.Context) (scripting.Value, error) {
		started := h.Call().Clock.Now()
		res, err := run(ctx, c)
		o.answered(h.Call(), func() component.Answer { return execAnswer(c, res, err) })
		if err != nil {
			return nil, err
		}
		if res.Code != 0 && h.Call().Delivery != nil {
			h.Call().OutsideFailed = true
		}
		m := scripting.NewMap()
		m.Set("code", int64(res.Code))
		m.Set("stdout", res.Stdout)
		m.Set("stderr", res.Stderr)
		m.Set("seconds", h.Call().Clock.Now().Sub(started).Seconds())
		return m, nil
	})
}

// defaultPath is the PATH of programs if weir has none.
const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

func (o *Access) lookupEnv(name string) (string, bool) {
	if o.outside.LookupEnv == nil {
		return "", false
	}
	return o.outside.LookupEnv(name)
}

// waitFor waits for fn within the call's limits, and within the option timeout.
func (o *Access) waitFor(h *Binding, opts *scripting.Map, fn func(ctx context.Context) (scripting.Value, error)) (scripting.Value, error) {
	limit, err := timeout(opts)
	if err != nil {
		return nil, err
	}
	return h.Wait(func(ctx context.Context) (scripting.Value, error) {
		if limit == 0 {
			return fn(ctx)
		}
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		alarm := clock.AfterFunc(h.Call().Clock, limit, func() { cancel(fmt.Errorf("%w: it took longer than %s", errTimeout, limit)) })
		defer alarm.Stop()
		return fn(ctx)
	})
}

// errTimeout is wrapped by the error of a wait that the option timeout ended.
var errTimeout = errors.New("timeout")

func timeoutParam() scripting.Param {
	return scripting.Param{Name: "timeout", Kind: scripting.KindNumber, Or: []scripting.Param{{Kind: scripting.KindString}}, Optional: true,
		Doc: `The maximum time to wait, in seconds or as "5s"; script.limits.wait is an upper limit.`}
}

func timeout(opts *scripting.Map) (time.Duration, error) {
	v, ok := option[scripting.Value](opts, "timeout")
	if !ok {
		return 0, nil
	}
	var d time.Duration
	switch v := v.(type) {
	case float64:
		d = time.Duration(v * float64(time.Second))
	case string:
		var err error
		if d, err = time.ParseDuration(v); err != nil {
			return 0, fmt.Errorf("cannot use %q as timeout: write a duration such as \"5s\"", v)
		}
	}
	if d <= 0 {
		return 0, errors.New("cannot use this timeout: it must be more than 0")
	}
	return d, nil
}

func maxBytesParam() scripting.Param {
	return scripting.Param{Name: "max_bytes", Kind: scripting.KindInt, Optional: true,
		Doc: fmt.Sprintf("The maximum size of the result; a larger one is an error. Default: %d, at most %d.", outsideBytes, maxOutsideBytes)}
}

func maxBytes(opts *scripting.Map) (int64, error) {
	n, ok := option[int64](opts, "max_bytes")
	if !ok {
		return outsideBytes, nil
	}
	if n < 0 || n > maxOutsideBytes {
		return 0, fmt.Errorf("cannot use max_bytes = %d: it must be between 0 and %d", n, maxOutsideBytes)
	}
	return n, nil
}

// option returns a value of an options table, which may be nil.
func option[T any](opts *scripting.Map, name string) (v T, ok bool) {
	if opts == nil {
		return v, false
	}
	x, there := opts.Get(name)
	if !there || x == nil || x == scripting.Null {
		return v, false
	}
	v, ok = x.(T)
	return v, ok
}

// revealText returns the text of a value, which may be a secret.
func revealText(v scripting.Value) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case scripting.Secret:
		return v.Reveal(), true
	}
	return "", false
}
