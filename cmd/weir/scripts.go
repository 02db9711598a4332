package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/weir-run/weir/scripting/lua"
	"github.com/weir-run/weir/stdlib"
)

// scriptsTopic is what `weir help scripts` prints: all that a script may use.
// testdata/script/help_scripts.txtar runs what it says.
func scriptsTopic() *cobra.Command {
	var b strings.Builder
	b.WriteString(`A file scripts/<namespace>/<name>.lua beside the config is the block
<namespace>.<name>. Files whose name begins with _, tests (<name>_test.lua) and
what is below lib are none; lib/x.lua is required as "x". The file's first
comment is its manual, and examples in it are run by 'weir test'.

It ends with

  return weir.transform {
    args    = { … },
    series  = function(s, ctx) … end,
    metrics = function(batch, ctx) … end,
  }

args are the attributes and blocks of the block: weir.arg.string, int, number,
bool, duration (seconds in the script), size (bytes), list, map, enum, secret,
targets (a list of maps), regexp (a re.Pattern in the script) and block, each with
{ default =, optional =, doc = }; a list and a map have of =, the type of their
elements, an enum has values =, a block has fields = { … } and repeated =. One
without default and optional is required.

series is asked once for each new series, and its answer is remembered: it may
depend on labels and ctx.args only. s has name, labels, type, help, unit and
drop().

metrics is called for each batch, which is one scrape of a target. What it does
not touch goes on as it came. Locals outside of functions are a VM's own, there
are several; globals are read-only.

A batch, cheapest first. where is an expression, nil for all records
  :drop_where(where)  :keep_where(where)
      Drops the records for which it is true, or all others.
  :set_label(name, value)  :drop_label(name)  :rename_label(name, new)
      Changes a label of all records.
  :scale(where, factor)  :set_value(where, expression)
      Changes values.
  :map_label(name, fn)
      Sets a label to fn(value), asked once for each distinct value; nil removes
      the label.
  :map_value(fn)
      Sets values to fn(value); nil leaves one as it is.
  :filter({"job", "value"}, fn)
      Keeps the records for which fn(job, value) is true. Fields are name,
      value, time, type, stale and labels.
  for i, job, value in batch:rows("job", "value") do … end
      Reads fields; batch:set(i, field, value) and batch:drop(i) change record i.
  :each(fn)
      Calls fn(record). An error costs one record instead of the batch.
  for record in batch:records() do … end    batch[i]    #batch
  :text()
      The batch in text form.

A record has name, type, value, labels, time (Unix ms), stale, help, unit, drop()
and copy(). A label that is not there is nil, and nil removes one. stale is true
of the marker that ends a series: it has no value, and what changes values leaves
it alone. Batches and records end with their hook; a copy may be kept.

ctx has
  ctx.args.NAME
      An argument of the block.
  ctx.emit { name =, labels =, value =, time =, type =, help =, unit =, stale = }
      Sends a record more; a record or a copy may be given instead.
  ctx.route(output, record)
      Sends a record, or the one of a row's number, to an output instead of
      forward_to; the definition has outputs = { "name" }, the block routes.
  ctx.log.info(message, { key = value })
      Also debug, warn and error.
  ctx.now()
      Unix ms.
  ctx.sleep(seconds)
      Waits, and the batch with it, for script.limits.wait at most.
  ctx.secret(text)
      A secret, which prints as <secret>; as those in ctx.args, only functions of
      ctx can use it.
  ctx.health(state, message)
      The node is "healthy", "degraded" or "unhealthy".
and what the definition declares in state, of weir.state.counter, map, set, lru and
queue, each with { max =, ttl =, on_full =, scope =, max_bytes =, max_value =, doc = }:
  state = { seen = weir.state.set { max = 10000, ttl = "1h" } }
  ctx.state.seen:add(key)
      All VMs share it, operations are atomic one by one, and it survives reloads;
      with scope = "persistent" restarts as well. When it is full, on_full =
      "refuse" makes a new entry an error, "evict" drops the oldest.
      counter  add(key, by) get(key) set(key, number) update(key, fn)
      map lru  get(key) set(key, value) update(key, fn)
      set      add(key)
      queue    push(value) pop() peek()
      all      has(key) delete(key) size() full() entries(limit) clear()
and what it declares in needs and the block grants in script.allow:
  needs = { http = true, env = { "REGION" }, read = true, exec = { "df" } }
  ctx.http.get(url, { headers =, query =, bearer =, timeout = })
      Also post(url, body, options) and request{ method =, url =, json = }. The
      answer has status, headers, body and json().
  ctx.env.NAME
  ctx.read(path)
  ctx.exec(command, { "argument" })
      Has code, stdout and stderr. Instead of true, http and read may list the
      URLs and files that are needed.

Beside series and metrics a transform may have setup(ctx), which runs before the
first batch, teardown(ctx), which runs after the last one, and timers:
every = { ["30s"] = function(ctx) … end }. They have a VM of their own, but in
script { concurrency = "single" }. When state is declared otherwise than before, or
version = 2 says that its values are others, migrate(old_state, old_version, ctx)
fills ctx.state from what the version before kept; what fits is there already.

An expression is of the language of the components expr.*, in a text:
  [[ name startsWith "go_" && labels.job in args.keep || value > 10 ]]
It sees name, labels (a missing one is ""), value, type, time and args. Parts that
read labels only are evaluated once for each series.

Functions of modules return value, error. Lua's own math, string and table are
there, as are pcall, error, select, pairs and the like; io, os and load are not.

`)
	for i, m := range stdlib.Modules() {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(m.Manual())
	}
	return &cobra.Command{
		Use:   "scripts",
		Short: "What a script may use",
		Long:  strings.TrimRight(b.String(), "\n"),
	}
}

// luaTopic is what `weir help lua` prints.
func luaTopic() *cobra.Command {
	return &cobra.Command{
		Use:   "lua",
		Short: "How the Lua of scripts differs from Lua 5.1",
		Long:  strings.TrimRight(lua.Manual(), "\n"),
	}
}
