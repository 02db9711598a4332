package unix

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// flags returns the arguments as flags of node_exporter v1.12.1, in a fixed
// order, without the flags that select collectors.
func (a *Arguments) flags() []string {
	var f flagList
	f.text("path.procfs", a.ProcFSPath)
	f.text("path.sysfs", a.SysFSPath)
	f.text("path.rootfs", a.RootFSPath)
	f.text("path.udev.data", a.UdevDataPath)

	f.text("collector.arp.device-exclude", a.ARP.DeviceExclude)
	f.text("collector.arp.device-include", a.ARP.DeviceInclude)
	f.bool("collector.arp.netlink", a.ARP.Netlink)
	f.bool("collector.bcache.priorityStats", a.Bcache.PriorityStats)
	f.text("collector.cpu.info.bugs-include", a.CPU.BugsInclude)
	f.bool("collector.cpu.guest", a.CPU.Guest)
	f.bool("collector.cpu.info", a.CPU.Info)
	f.text("collector.cpu.info.flags-include", a.CPU.FlagsInclude)
	if a.Disk.DeviceInclude != "" {
		f.text("collector.diskstats.device-include", a.Disk.DeviceInclude)
	} else {
		f.text("collector.diskstats.device-exclude", a.Disk.DeviceExclude)
	}
	f.text("collector.ethtool.device-exclude", a.Ethtool.DeviceExclude)
	f.text("collector.ethtool.device-include", a.Ethtool.DeviceInclude)
	f.text("collector.ethtool.metrics-include", a.Ethtool.MetricsInclude)
	f.text("collector.filesystem.fs-types-exclude", a.Filesystem.FSTypesExclude)
	f.text("collector.filesystem.mount-points-exclude", a.Filesystem.MountPointsExclude)
	f.duration("collector.filesystem.mount-timeout", a.Filesystem.MountTimeout)
	f.text("collector.hwmon.chip-exclude", a.Hwmon.ChipExclude)
	f.text("collector.hwmon.chip-include", a.Hwmon.ChipInclude)
	if len(a.IPVS.BackendLabels) > 0 {
		f.text("collector.ipvs.backend-labels", strings.Join(a.IPVS.BackendLabels, ","))
	}
	f.int("collector.ntp.ip-ttl", a.NTP.IPTTL)
	f.duration("collector.ntp.local-offset-tolerance", a.NTP.LocalOffsetTolerance)
	f.duration("collector.ntp.max-distance", a.NTP.MaxDistance)
	f.int("collector.ntp.protocol-version", a.NTP.ProtocolVersion)
	f.text("collector.ntp.server", a.NTP.Server)
	f.bool("collector.ntp.server-is-local", a.NTP.ServerIsLocal)
	f.bool("collector.netclass.ignore-invalid-speed", a.Netclass.IgnoreInvalidSpeedDevice)
	f.text("collector.netclass.ignored-devices", a.Netclass.IgnoredDevices)
	f.bool("collector.netdev.address-info", a.Netdev.AddressInfo)
	f.text("collector.netdev.device-exclude", a.Netdev.DeviceExclude)
	f.text("collector.netdev.device-include", a.Netdev.DeviceInclude)
	f.text("collector.netstat.fields", a.Netstat.Fields)
	f.text("collector.perf.cpus", a.Perf.CPUs)
	f.list("collector.perf.tracepoint", a.Perf.Tracepoint)
	f.bool("collector.perf.disable-hardware-profilers", a.Perf.DisableHardwareProfilers)
	f.bool("collector.perf.disable-software-profilers", a.Perf.DisableSoftwareProfilers)
	f.bool("collector.perf.disable-cache-profilers", a.Perf.DisableCacheProfilers)
	f.list("collector.perf.hardware-profilers", a.Perf.HardwareProfilers)
	f.list("collector.perf.software-profilers", a.Perf.SoftwareProfilers)
	f.list("collector.perf.cache-profilers", a.Perf.CacheProfilers)
	f.text("collector.powersupply.ignored-supplies", a.Powersupply.IgnoredSupplies)
	f.text("collector.runit.servicedir", a.Runit.ServiceDir)
	if a.Supervisord.URL != "" { // otherwise, the flag reads the environment variable
		f.text("collector.supervisord.url", a.Supervisord.URL)
	}
	f.list("collector.sysctl.include", a.Sysctl.Include)
	f.list("collector.sysctl.include-info", a.Sysctl.IncludeInfo)
	f.bool("collector.systemd.enable-restarts-metrics", a.Systemd.EnableRestarts)
	f.bool("collector.systemd.enable-start-time-metrics", a.Systemd.StartTime)
	f.bool("collector.systemd.enable-task-metrics", a.Systemd.TaskMetrics)
	f.text("collector.systemd.unit-exclude", a.Systemd.UnitExclude)
	f.text("collector.systemd.unit-include", a.Systemd.UnitInclude)
	f.text("collector.tapestats.ignored-devices", a.Tapestats.IgnoredDevices)
	f.text("collector.textfile.directory", a.Textfile.Directory)
	f.text("collector.vmstat.fields", a.Vmstat.Fields)
	return f
}

type flagList []string

func (f *flagList) text(name, v string) { *f = append(*f, "--"+name+"="+v) }

func (f *flagList) int(name string, v int) { f.text(name, fmt.Sprint(v)) }

func (f *flagList) duration(name string, v time.Duration) { f.text(name, v.String()) }

func (f *flagList) bool(name string, v bool) {
	if v {
		*f = append(*f, "--"+name)
	} else {
		*f = append(*f, "--no-"+name)
	}
}

func (f *flagList) list(name string, vs []string) {
	for _, v := range vs {
		f.text(name, v)
	}
}

// collectors returns the sorted names of the collectors to run, and the names in
// the arguments that do not exist. available maps the name of each collector to
// whether it runs by default.
func (a *Arguments) collectors(available map[string]bool) (run, unknown []string) {
	on := map[string]bool{}
	if len(a.SetCollectors) > 0 {
		for _, name := range a.SetCollectors {
			on[name] = true
		}
	} else {
		for name, byDefault := range available {
			on[name] = byDefault
		}
	}
	for _, name := range a.DisableCollectors {
		on[name] = false
	}
	for _, name := range a.EnableCollectors {
		on[name] = true
	}
	for name, enabled := range on {
		if _, ok := available[name]; !ok {
			unknown = append(unknown, name)
		} else if enabled {
			run = append(run, name)
		}
	}
	slices.Sort(run)
	slices.Sort(unknown)
	return run, unknown
}
