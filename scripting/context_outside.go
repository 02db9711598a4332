package scripting

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weir-run/weir/engine/clock"
	"github.com/weir-run/weir/scripting/egress"
)

// Bounds of what comes from outside, in bytes: what a script gets unless it says
// so, and the most that it can ask for.
const (
	outsideBytes    = 1 << 20
	maxOutsideBytes = MaxString
	// maxCommandLine bounds the arguments of a program together, and maxHeaderBytes
	// the headers of a request or an answer, and its URL.
	maxCommandLine = 128 << 10
	maxHeaderBytes = 64 << 10
)

// addOutside adds to ctx what is granted to a script, or everything for the
// manual, which has no world.
func addOutside(m *Module, h *hookHost, o *world) {
	all := o == nil
	if all {
		o = &world{}
	}
	m.Funcs = append(m.Funcs, secretFunc())
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
		if !slices.Contains(needKinds, name) {
			return ""
		}
		return fmt.Sprintf("cannot use ctx.%s: the script does not declare it; write needs = { %s } in its definition, and grant it in the block's script.allow", name, needExamples[name])
	}
}

var needExamples = map[string]string{"http": "http = true", "env": `env = { "NAME" }`, "read": "read = true", "exec": `exec = { "NAME" }`}

// envTable is ctx.env.
func envTable(o *world) *Module {
	m := &Module{
		Name: "env",
		Doc: "The environment variables that the script needs and script.allow.env grants, as they were when the component was built. " +
			"One that is not set is nil.",
		Absent: func(name string) string {
			return fmt.Sprintf(`there is no ctx.env.%s: write needs = { env = { "%s" } } in the script's definition, and grant it in script.allow.env`, name, name)
		},
	}
	for _, name := range o.needs.Env {
		c := Const{Name: name, Doc: "An environment variable."}
		if v, ok := o.env[name]; ok {
			c.Value = v
		}
		m.Consts = append(m.Consts, c)
	}
	return m
}

// secretFunc is ctx.secret.
func secretFunc() Function {
	return Function{
		Name: "secret",
		Doc: "Makes a secret of a text, such as a token that ctx.read or ctx.http got: it prints as <secret> wherever it goes, " +
			"and only functions of ctx that take one can use it, as those take the secrets in ctx.args.",
		Params: []Param{{Name: "text", Kind: KindString, Doc: "The text."}},
		Result: Result{Kind: KindAny, Doc: "The secret."},
		Uses: []Use{{
			Lua: `assert(tostring(ctx.secret("s3cret")) == "<secret>")`,
			JS:  `if (String(ctx.secret("s3cret")) !== "<secret>") throw new Error("it shows");`, Input: "a 1\n", Output: "a 1\n",
		}},
		Fn: func(args []Value) (Value, error) { return NewSecret(args[0].(string)), nil },
	}
}

// readFunc is ctx.read.
func readFunc(h *hookHost, o *world) Function {
	return Function{
		Name: "read",
		Doc: "Reads a file. It must be a regular file that script.allow.read grants; a symbolic link must not lead out of the folder that the pattern names. " +
			"When a file changes that setup has read, the component is built anew.",
		Params: []Param{
			{Name: "path", Kind: KindString, Doc: "The absolute path, without . and .."},
			{Name: "options", Kind: KindMap, Optional: true, Doc: "How.", Fields: []Param{
				maxBytesParam(),
				{Name: "secret", Kind: KindBool, Optional: true, Doc: "Gives a secret instead of the text, without white space at its end."},
			}},
		},
		Result: Result{Kind: KindAny, Doc: "What is in the file.", Fails: true},
		Waits:  true,
		Uses: []Use{{
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
		Fn: func(args []Value) (Value, error) {
			opts, _ := args[1].(*Map)
			limit, err := maxBytes(opts)
			if err != nil {
				return nil, err
			}
			path := args[0].(string)
			body, err := o.read(path, limit)
			o.recordReading(h.call(), reading{path, limit}, body)
			if err != nil {
				h.call().outsideFailed = true
				return nil, err
			}
			if s, _ := option[bool](opts, "secret"); s {
				return NewSecret(strings.TrimRight(string(body), " \t\r\n")), nil
			}
			return string(body), nil
		},
	}
}

// reading is a file, of which so much may come: more could not be read.
type reading struct {
	path  string
	limit int64
}

// recordReading keeps what setup has read of a file; body is nil when it could not be
// read.
func (o *world) recordReading(k *hookCall, r reading, body []byte) {
	if !k.setup {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.seen == nil {
		o.seen = map[reading][32]byte{}
	}
	o.seen[r] = sha256.Sum256(body)
}

// changed reports whether a file is another than the one that setup has read.
func (o *world) changed() bool {
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

// execFunc is ctx.exec.
func execFunc(h *hookHost, o *world) Function {
	return Function{
		Name: "exec",
		Doc: "Runs a program that script.allow.exec grants, without a shell, in the root directory, with nothing but PATH and LC_ALL in its environment, and waits for it. " +
			"When it takes longer than script.limits.wait, or writes too much, it is killed with all that it started.",
		Params: []Param{
			{Name: "command", Kind: KindString, Doc: "The program: its name, or its absolute path."},
			{Name: "args", Kind: KindList, Of: &Param{Kind: KindString}, Optional: true, Doc: "Its arguments, each as it is."},
			{Name: "options", Kind: KindMap, Optional: true, Doc: "How.", Fields: []Param{
				{Name: "stdin", Kind: KindAny, Optional: true, Doc: "What it reads: a text or a secret."},
				timeoutParam(),
				maxBytesParam(),
			}},
		},
		Result: Result{Kind: KindMap, Fails: true, Doc: "What it did. A code other than 0 is no error.", Fields: []Param{
			{Name: "code", Kind: KindInt, Doc: "What it ended with."},
			{Name: "stdout", Kind: KindString, Doc: "What it wrote."},
			{Name: "stderr", Kind: KindString, Doc: "What it wrote as errors."},
			{Name: "seconds", Kind: KindNumber, Doc: "How long it ran."},
		}},
		Waits: true,
		Uses: []Use{{
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
		Fn: func(args []Value) (Value, error) {
			opts, _ := args[2].(*Map)
			out, err := o.exec(h, args[0].(string), args[1], opts)
			if o.outcomes != nil {
				o.outcomes.command(err)
			}
			return out, err
		},
	}
}

func (o *world) exec(h *hookHost, name string, list Value, opts *Map) (Value, error) {
	var args []string
	if l, ok := list.(*List); ok {
		size := 0
		for _, a := range l.Items {
			if size += len(a.(string)) + 1; size > maxCommandLine {
				return nil, fmt.Errorf("cannot use arguments of more than %d bytes; pass what is longer as stdin", maxCommandLine)
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
	if in, ok := option[Value](opts, "stdin"); ok {
		if c.Stdin, ok = revealText(in); !ok {
			return nil, errors.New("cannot use this as stdin: it must be a text or a secret")
		}
	}
	run := o.outside.Exec
	if run == nil {
		run = egress.Run
	}
	return o.waitFor(h, opts, func(ctx context.Context) (Value, error) {
		started := h.call().clock.Now()
		res, err := run(ctx, c)
		if err != nil {
			return nil, err
		}
		if res.Code != 0 && h.call().delivery != nil {
			h.call().outsideFailed = true
		}
		m := NewMap()
		m.Set("code", int64(res.Code))
		m.Set("stdout", res.Stdout)
		m.Set("stderr", res.Stderr)
		m.Set("seconds", h.call().clock.Now().Sub(started).Seconds())
		return m, nil
	})
}

// defaultPath is the PATH of programs when weir has none.
const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

func (o *world) lookupEnv(name string) (string, bool) {
	if o.outside.LookupEnv == nil {
		return "", false
	}
	return o.outside.LookupEnv(name)
}

// waitFor waits for fn within the call's limits, and within the option timeout.
func (o *world) waitFor(h *hookHost, opts *Map, fn func(ctx context.Context) (Value, error)) (Value, error) {
	limit, err := timeout(opts)
	if err != nil {
		return nil, err
	}
	return h.wait(func(ctx context.Context) (Value, error) {
		if limit == 0 {
			return fn(ctx)
		}
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		alarm := clock.AfterFunc(h.call().clock, limit, func() { cancel(fmt.Errorf("%w: it took longer than %s", errTimeout, limit)) })
		defer alarm.Stop()
		return fn(ctx)
	})
}

// errTimeout is what an error wraps when the option timeout ended a wait.
var errTimeout = errors.New("timeout")

func timeoutParam() Param {
	return Param{Name: "timeout", Kind: KindNumber, Or: []Param{{Kind: KindString}}, Optional: true,
		Doc: `How long to wait at most, in seconds or as "5s"; script.limits.wait bounds it all the same.`}
}

func timeout(opts *Map) (time.Duration, error) {
	v, ok := option[Value](opts, "timeout")
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

func maxBytesParam() Param {
	return Param{Name: "max_bytes", Kind: KindInt, Optional: true,
		Doc: fmt.Sprintf("How much may come; more is an error. Default: %d, at most %d.", outsideBytes, maxOutsideBytes)}
}

func maxBytes(opts *Map) (int64, error) {
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
func option[T any](opts *Map, name string) (v T, ok bool) {
	if opts == nil {
		return v, false
	}
	x, there := opts.Get(name)
	if !there || x == nil || x == Null {
		return v, false
	}
	v, ok = x.(T)
	return v, ok
}

// revealText returns a text, also of a secret.
func revealText(v Value) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case Secret:
		return v.Reveal(), true
	}
	return "", false
}
