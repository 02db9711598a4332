describe("source.script_exporter", function()
  -- Runs a component whose program prints out, and returns what the second poll sends,
  -- and the component.
  local function run(answer, args)
    weir.test.exec { raid_status = answer }
    args = args or {}
    args.command = "raid_status"
    local t = weir.test.component("script_exporter.lua", args)
    return t:advance("1m"), t
  end

  it("sends what the program prints, and how it went", function()
    assert.same([[
      script_exit_code{script="raid_status"} 0
      script_duration_seconds{script="raid_status"} 0
      # TYPE raid_disks gauge
      raid_disks{script="raid_status",state="failed"} 1
      raid_disks{script="raid_status",state="ok"} 7
      script_success{script="raid_status"} 1
    ]], (run('# TYPE raid_disks gauge\nraid_disks{state="failed"} 1\nraid_disks{state="ok"} 7\n')))
    local _, t = run("")
    assert.same({}, t:logged())
  end)

  it("tells of a program that fails", function()
    local out, t = run { code = 3, stdout = "", stderr = "no controller" }
    assert.matches("the program failed.*no controller", t:logged()[1])
    assert.equals(3, out:value 'script_exit_code{script="raid_status"}')
    assert.equals(0, out:value 'script_success{script="raid_status"}')
  end)

  it("tells of a program that prints something else", function()
    local out = run "all is well\n"
    assert.equals(0, out:value 'script_success{script="raid_status"}')
  end)

  it("has only success to tell of a program that cannot be run", function()
    local out = run { error = "no such file" }
    assert.same('script_success{script="raid_status"} 0', out)
  end)

  it("reads the performance data of Nagios plugins", function()
    local out = run({ code = 1, stdout = "WARNING - slow | time=20ms;10;30 'disk used'=2KB;;;0 load=-1.5 temp=U\n" }, { format = "nagios" })
    assert.near(0.02, out:value 'nagios_time_seconds{script="raid_status"}', 1e-9)
    assert.equals(2048, out:value 'nagios_disk_used_bytes{script="raid_status"}')
    assert.equals(-1.5, out:value 'nagios_load{script="raid_status"}')
    assert.equals(1, out:value 'script_success{script="raid_status"}')
    assert.equals(6, #out)
  end)

  it("knows the units of performance data", function()
    local data = "a=1s b=1ms c=1us d=1B e=1KB f=1MB g=1GB h=1% i=1c j=1x"
    local out = run("OK | " .. data, { format = "nagios" })
    for name, want in pairs {
      a_seconds = 1, b_seconds = 0.001, c_seconds = 0.000001, d_bytes = 1, e_bytes = 1024, f_bytes = 1048576,
      g_bytes = 1073741824, h_ratio = 0.01, i_total = 1, j = 1,
    } do
      assert.equals(want, out:value(("nagios_%s{script=%q}"):format(name, "raid_status")))
    end
  end)

  it("shows performance data that it cannot read", function()
    local out, t = run("OK | a=1 load=abc c=2", { format = "nagios" })
    assert.equals(0, out:value 'script_success{script="raid_status"}')
    assert.matches("cannot read the performance data at:  load=abc c=2", t:logged()[1])
  end)

  it("sets labels, those of the program last", function()
    local out = run('a{site="x"} 1\nb 2\n', { name = "raid", labels = { site = "lab", rack = "r1" } })
    local out = run('a{site="x"} 1\nb 2\n', { name = "raid", labels = { site = "lab", rack = "r1" } })
    assert.equals(1, out:value 'a{rack="r1",script="raid",site="x"}')
    assert.equals(2, out:value 'b{rack="r1",script="raid",site="lab"}')
  end)
end)
