-- Runs a program every interval and sends the metrics that it prints.
--
-- The program prints the Prometheus text format, as for node_exporter's textfile
-- collector. With `format = "nagios"`, it prints one line as a Nagios plugin does, and
-- the performance data become metrics. These metrics describe each run:
--
--   script_success             1 when it ended with code 0 and what it printed was understood
--   script_exit_code           what it ended with
--   script_duration_seconds    how long it ran
--
-- All metrics have the label script, which is `name` or, by default, the name of the program.
--
--   source.script_exporter "default" {
--   	command    = "/usr/local/bin/raid_status"
--   	arguments  = ["--all"]
--   	interval   = "1m"
--   	forward_to = [prometheus.remote_write.default.receiver]
--
--   	script {
--   		allow {
--   			exec = ["/usr/local/bin/raid_status --all"]
--   		}
--   	}
--   }
local prom = require "prom"
local text = require "text"
local weir = require "weir"

-- What performance data may be given in, and what that is in base units.
local UNITS = {
  s = { "_seconds", 1 }, ms = { "_seconds", 0.001 }, us = { "_seconds", 0.000001 },
  B = { "_bytes", 1 }, KB = { "_bytes", 1024 }, MB = { "_bytes", 1048576 }, GB = { "_bytes", 1073741824 },
  ["%"] = { "_ratio", 0.01 }, c = { "_total", 1 },
}

-- nagios reads one line of a plugin: OK - all well | load=0.5;1;2 time=20ms
-- https://nagios-plugins.org/doc/guidelines.html#AEN200
local function nagios(out)
  local samples = {}
  local rest = out:match "^[^\n]*|([^\n]*)" or ""
  while rest:find "%S" do
    local label, value, unit = rest:match "^%s*'([^']+)'=([-%d.]+)([%a%%]*)"
    if not label then label, value, unit = rest:match "^%s*([^%s=']+)=([-%d.]+)([%a%%]*)" end
    local number = tonumber(value)
    if number then
      local name, scale = text.label_name(label), 1
      local known = UNITS[unit]
      if known then
        name, scale = name .. known[1], known[2]
      end
      samples[#samples + 1] = { name = "nagios_" .. name, value = number * scale }
    elseif not rest:match "^%s*%S+=U" then -- U is: not known now
      return nil, "cannot read the performance data at: " .. rest
    end
    rest = rest:match "^%s*'[^']*'=%S*(.*)" or rest:match "^%s*%S+(.*)"
  end
  return samples
end

return weir.source {
  interval = "1m",
  needs = { exec = true },

  args = {
    command   = weir.arg.string { doc = "Absolute path of the program, or a name that script.allow.exec contains." },
    arguments = weir.arg.list { of = weir.arg.string {}, default = {}, doc = "Arguments of the program. They are passed unchanged, without a shell." },
    timeout   = weir.arg.duration { default = "10s", doc = "Time after which the program is killed. It cannot exceed script.limits.wait, which is 10s by default." },
    format    = weir.arg.enum { values = { "prometheus", "nagios" }, default = "prometheus", doc = "Format of the output." },
    name      = weir.arg.string { optional = true, doc = "The value of the label script." },
    labels    = weir.arg.map { of = weir.arg.string {}, default = {}, doc = "Labels to add to all metrics." },
  },

  poll = function(ctx)
    local args = ctx.args
    local labels = { script = args.name or args.command:match "[^/\\]+$" }
    for k, v in pairs(args.labels) do labels[k] = v end

    local function emit(sample)
      local all = {}
      for k, v in pairs(labels) do all[k] = v end
      for k, v in pairs(sample.labels or {}) do all[k] = v end
      sample.labels = all
      ctx.emit(sample)
    end

    local done, err = ctx.exec(args.command, args.arguments, { timeout = args.timeout })
    local samples
    if done then
      emit { name = "script_exit_code", type = "gauge", value = done.code }
      emit { name = "script_duration_seconds", type = "gauge", value = done.seconds }
      local parse = args.format == "nagios" and nagios or prom.parse
      samples, err = parse(done.stdout)
      if samples then
        for _, sample in ipairs(samples) do emit(sample) end
      end
    end
    local ok = samples and (done.code == 0 or args.format == "nagios")
    emit { name = "script_success", type = "gauge", value = ok and 1 or 0 }
    if not ok then
      ctx.log.warn("the program failed", { command = args.command, code = done and done.code, err = err, stderr = done and done.stderr })
    end
  end,
}
