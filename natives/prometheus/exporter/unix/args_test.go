package unix_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/weir-run/weir/natives/prometheus/exporter/unix"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func defaults() *unix.Arguments { return unix.Registration().NewArgs().(*unix.Arguments) }

// TestEveryArgumentCounts changes one argument at a time and checks that a flag
// changes, so that no argument is ignored.
func TestEveryArgumentCounts(t *testing.T) {
	base := unix.Flags(defaults())
	choice := []string{"IncludeExporterMetrics", "EnableCollectors", "DisableCollectors", "SetCollectors"}
	var walk func(path []int, v reflect.Value, name string)
	walk = func(path []int, v reflect.Value, name string) {
		for i := range v.NumField() {
			at := append(slices.Clone(path), i)
			field := name + v.Type().Field(i).Name
			if v.Field(i).Kind() == reflect.Struct {
				walk(at, v.Field(i), field+".")
				continue
			}
			a := defaults()
			f := reflect.ValueOf(a).Elem().FieldByIndex(at)
			switch x := f.Addr().Interface().(type) {
			case *string:
				*x += "x"
			case *bool:
				*x = !*x
			case *int:
				*x++
			case *time.Duration:
				*x += time.Second
			case *[]string:
				*x = []string{"x"}
			default:
				t.Fatalf("%s has type %T, which the test does not know", field, x)
			}
			same := slices.Equal(base, unix.Flags(a))
			if same != slices.Contains(choice, field) {
				t.Errorf("%s: flags unchanged is %v", field, same)
			}
		}
	}
	walk(nil, reflect.ValueOf(*defaults()), "")
}

func TestDiskInclude(t *testing.T) {
	a := defaults()
	a.Disk.DeviceInclude = "sda"
	flags := strings.Join(unix.Flags(a), " ")
	if strings.Contains(flags, "diskstats.device-exclude") || !strings.Contains(flags, "--collector.diskstats.device-include=sda") {
		t.Errorf("got %s, want device-include only", flags)
	}
}

func TestCollectors(t *testing.T) {
	available := map[string]bool{"cpu": true, "meminfo": true, "perf": false, "stat": true}
	f := func(set, enable, disable []string, wantRun, wantUnknown string) {
		t.Helper()
		run, unknown := unix.Collectors(&unix.Arguments{SetCollectors: set, EnableCollectors: enable, DisableCollectors: disable}, available)
		if diff := cmp.Diff([]string{wantRun, wantUnknown}, []string{strings.Join(run, " "), strings.Join(unknown, " ")}); diff != "" {
			t.Errorf("set %q, enable %q, disable %q (-want +got):\n%s", set, enable, disable, diff)
		}
	}
	f(nil, nil, nil, "cpu meminfo stat", "")
	f([]string{"perf"}, nil, nil, "perf", "")
	f([]string{"perf"}, []string{"cpu"}, []string{"perf"}, "cpu", "")
	f(nil, []string{"perf"}, []string{"cpu", "stat"}, "meminfo perf", "")
	f(nil, []string{"cpu"}, []string{"cpu"}, "cpu meminfo stat", "")
	f([]string{"boottime", "cpu"}, []string{"exec"}, nil, "cpu", "boottime exec")
	f(nil, nil, []string{"cpu", "meminfo", "stat"}, "", "")
}

func TestValidate(t *testing.T) {
	if err := defaults().Validate(); err != nil {
		t.Errorf("the defaults are invalid: %v", err)
	}
	f := func(want string, edit func(*unix.Arguments)) {
		t.Helper()
		a := defaults()
		edit(a)
		if err := a.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	f("vmstat.fields is not a regular expression", func(a *unix.Arguments) { a.Vmstat.Fields = "(" })
	f("netdev.device_include is not a regular expression", func(a *unix.Arguments) { a.Netdev.DeviceInclude = "(" })
	f("cpu.bugs_include is not a regular expression: error parsing regexp: missing closing ): `^(?:()$`\n"+
		"hwmon.chip_exclude is not a regular expression: error parsing regexp: missing closing ): `^(?:()$`\n"+
		"netstat.fields is not a regular expression", func(a *unix.Arguments) {
		a.Netstat.Fields, a.Hwmon.ChipExclude, a.CPU.BugsInclude = "(", "(", "("
	})
	f("hwmon: at most one of chip_exclude and chip_include", func(a *unix.Arguments) { a.Hwmon.ChipExclude, a.Hwmon.ChipInclude = "a", "b" })
	f("arp: at most one of device_exclude and device_include", func(a *unix.Arguments) { a.ARP.DeviceExclude, a.ARP.DeviceInclude = "a", "b" })
	f("mount_timeout is 0s", func(a *unix.Arguments) { a.Filesystem.MountTimeout = 0 })
}
