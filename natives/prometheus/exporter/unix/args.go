package unix

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"time"
)

// Arguments of prometheus.exporter.unix. Except for include_exporter_metrics and the
// lists of collectors, they apply to the whole process, and a change needs a restart.
type Arguments struct {
	// Whether promhttp_ metrics about the exporter's own handler are exposed.
	IncludeExporterMetrics bool `alloy:"include_exporter_metrics,attr,optional"`
	// Where procfs is mounted.
	ProcFSPath string `alloy:"procfs_path,attr,optional"`
	// Where sysfs is mounted.
	SysFSPath string `alloy:"sysfs_path,attr,optional"`
	// Prefix of the paths of the host's file systems.
	RootFSPath string `alloy:"rootfs_path,attr,optional"`
	// Directory of the udev data.
	UdevDataPath string `alloy:"udev_data_path,attr,optional"`

	// Collectors to run in addition to the default ones or set_collectors.
	EnableCollectors []string `alloy:"enable_collectors,attr,optional"`
	// Collectors not to run; enable_collectors has precedence.
	DisableCollectors []string `alloy:"disable_collectors,attr,optional"`
	// Collectors to run instead of the default ones.
	SetCollectors []string `alloy:"set_collectors,attr,optional"`

	// Settings of the arp collector.
	ARP ARP `alloy:"arp,block,optional"`
	// Settings of the bcache collector.
	Bcache Bcache `alloy:"bcache,block,optional"`
	// Settings of the cpu collector.
	CPU CPU `alloy:"cpu,block,optional"`
	// Settings of the diskstats collector.
	Disk Disk `alloy:"disk,block,optional"`
	// Settings of the ethtool collector.
	Ethtool Ethtool `alloy:"ethtool,block,optional"`
	// Settings of the filesystem collector.
	Filesystem Filesystem `alloy:"filesystem,block,optional"`
	// Settings of the hwmon collector.
	Hwmon Hwmon `alloy:"hwmon,block,optional"`
	// Settings of the ipvs collector.
	IPVS IPVS `alloy:"ipvs,block,optional"`
	// Settings of the ntp collector.
	NTP NTP `alloy:"ntp,block,optional"`
	// Settings of the netclass collector.
	Netclass Netclass `alloy:"netclass,block,optional"`
	// Settings of the netdev collector.
	Netdev Netdev `alloy:"netdev,block,optional"`
	// Settings of the netstat collector.
	Netstat Netstat `alloy:"netstat,block,optional"`
	// Settings of the perf collector.
	Perf Perf `alloy:"perf,block,optional"`
	// Settings of the powersupplyclass collector.
	Powersupply Powersupply `alloy:"powersupply,block,optional"`
	// Settings of the runit collector.
	Runit Runit `alloy:"runit,block,optional"`
	// Settings of the supervisord collector.
	Supervisord Supervisord `alloy:"supervisord,block,optional"`
	// Settings of the sysctl collector.
	Sysctl Sysctl `alloy:"sysctl,block,optional"`
	// Settings of the systemd collector.
	Systemd Systemd `alloy:"systemd,block,optional"`
	// Settings of the tapestats collector.
	Tapestats Tapestats `alloy:"tapestats,block,optional"`
	// Settings of the textfile collector.
	Textfile Textfile `alloy:"textfile,block,optional"`
	// Settings of the vmstat collector.
	Vmstat Vmstat `alloy:"vmstat,block,optional"`
}

// ARP are the settings of the arp collector.
type ARP struct {
	// Regular expression of devices to leave out; not together with device_include.
	DeviceExclude string `alloy:"device_exclude,attr,optional"`
	// Regular expression of devices to take; not together with device_exclude.
	DeviceInclude string `alloy:"device_include,attr,optional"`
	// Whether to ask by netlink instead of reading /proc/net/arp.
	Netlink bool `alloy:"netlink,attr,optional"`
}

// Bcache are the settings of the bcache collector.
type Bcache struct {
	// Whether to expose the priority statistics, which are costly.
	PriorityStats bool `alloy:"priority_stats,attr,optional"`
}

// CPU are the settings of the cpu collector.
type CPU struct {
	// Regular expression of the bugs that node_cpu_bug_info has.
	BugsInclude string `alloy:"bugs_include,attr,optional"`
	// Whether to expose node_cpu_guest_seconds_total.
	Guest bool `alloy:"guest,attr,optional"`
	// Whether to expose node_cpu_info.
	Info bool `alloy:"info,attr,optional"`
	// Regular expression of the flags that node_cpu_flag_info has.
	FlagsInclude string `alloy:"flags_include,attr,optional"`
}

// Disk are the settings of the diskstats collector.
type Disk struct {
	// Regular expression of devices to leave out.
	DeviceExclude string `alloy:"device_exclude,attr,optional"`
	// Regular expression of devices to take; if set, device_exclude is ignored.
	DeviceInclude string `alloy:"device_include,attr,optional"`
}

// Ethtool are the settings of the ethtool collector.
type Ethtool struct {
	// Regular expression of devices to leave out; not together with device_include.
	DeviceExclude string `alloy:"device_exclude,attr,optional"`
	// Regular expression of devices to take; not together with device_exclude.
	DeviceInclude string `alloy:"device_include,attr,optional"`
	// Regular expression of the statistics to expose.
	MetricsInclude string `alloy:"metrics_include,attr,optional"`
}

// Filesystem are the settings of the filesystem collector.
type Filesystem struct {
	// Regular expression of file system types to leave out.
	FSTypesExclude string `alloy:"fs_types_exclude,attr,optional"`
	// Regular expression of mount points to leave out.
	MountPointsExclude string `alloy:"mount_points_exclude,attr,optional"`
	// Time after which a mount that does not respond is considered stuck.
	MountTimeout time.Duration `alloy:"mount_timeout,attr,optional"`
}

// Hwmon are the settings of the hwmon collector.
type Hwmon struct {
	// Regular expression of chips to leave out; not together with chip_include.
	ChipExclude string `alloy:"chip_exclude,attr,optional"`
	// Regular expression of chips to take; not together with chip_exclude.
	ChipInclude string `alloy:"chip_include,attr,optional"`
}

// IPVS are the settings of the ipvs collector.
type IPVS struct {
	// Labels of the backend metrics; an empty list means all: local_address, local_port,
	// remote_address, remote_port, proto, local_mark.
	BackendLabels []string `alloy:"backend_labels,attr,optional"`
}

// NTP are the settings of the ntp collector.
type NTP struct {
	// Time to live of the packets sent.
	IPTTL int `alloy:"ip_ttl,attr,optional"`
	// Maximum difference between the local clock and a local ntpd.
	LocalOffsetTolerance time.Duration `alloy:"local_offset_tolerance,attr,optional"`
	// Maximum distance to the root clock.
	MaxDistance time.Duration `alloy:"max_distance,attr,optional"`
	// Version of the NTP protocol.
	ProtocolVersion int `alloy:"protocol_version,attr,optional"`
	// Server to query.
	Server string `alloy:"server,attr,optional"`
	// Whether the server is private although its address is not local.
	ServerIsLocal bool `alloy:"server_is_local,attr,optional"`
}

// Netclass are the settings of the netclass collector.
type Netclass struct {
	// Whether to leave out the speed of devices that report an invalid one.
	IgnoreInvalidSpeedDevice bool `alloy:"ignore_invalid_speed_device,attr,optional"`
	// Regular expression of devices to leave out.
	IgnoredDevices string `alloy:"ignored_devices,attr,optional"`
}

// Netdev are the settings of the netdev collector.
type Netdev struct {
	// Whether to expose the addresses of every device.
	AddressInfo bool `alloy:"address_info,attr,optional"`
	// Regular expression of devices to leave out; not together with device_include.
	DeviceExclude string `alloy:"device_exclude,attr,optional"`
	// Regular expression of devices to take; not together with device_exclude.
	DeviceInclude string `alloy:"device_include,attr,optional"`
}

// Netstat are the settings of the netstat collector.
type Netstat struct {
	// Regular expression of the fields to expose.
	Fields string `alloy:"fields,attr,optional"`
}

// Perf are the settings of the perf collector.
type Perf struct {
	// CPUs to profile, such as "0-3,7"; all of them when empty.
	CPUs string `alloy:"cpus,attr,optional"`
	// Tracepoints to count, such as "sched:sched_process_exec".
	Tracepoint []string `alloy:"tracepoint,attr,optional"`
	// Whether to leave the hardware profilers out.
	DisableHardwareProfilers bool `alloy:"disable_hardware_profilers,attr,optional"`
	// Whether to leave the software profilers out.
	DisableSoftwareProfilers bool `alloy:"disable_software_profilers,attr,optional"`
	// Whether to leave the cache profilers out.
	DisableCacheProfilers bool `alloy:"disable_cache_profilers,attr,optional"`
	// Hardware profilers to run; all of them when empty.
	HardwareProfilers []string `alloy:"hardware_profilers,attr,optional"`
	// Software profilers to run; all of them when empty.
	SoftwareProfilers []string `alloy:"software_profilers,attr,optional"`
	// Cache profilers to run; all of them when empty.
	CacheProfilers []string `alloy:"cache_profilers,attr,optional"`
}

// Powersupply are the settings of the powersupplyclass collector.
type Powersupply struct {
	// Regular expression of power supplies to leave out.
	IgnoredSupplies string `alloy:"ignored_supplies,attr,optional"`
}

// Runit are the settings of the runit collector.
type Runit struct {
	// Directory of the services.
	ServiceDir string `alloy:"service_dir,attr,optional"`
}

// Supervisord are the settings of the supervisord collector.
type Supervisord struct {
	// XML-RPC endpoint. Default: the environment variable SUPERVISORD_URL or, if it is
	// not set, http://localhost:9001/RPC2.
	URL string `alloy:"url,attr,optional"`
}

// Sysctl are the settings of the sysctl collector.
type Sysctl struct {
	// Numeric values to expose, such as "fs.file-nr".
	Include []string `alloy:"include,attr,optional"`
	// Values to expose as a label of an info metric.
	IncludeInfo []string `alloy:"include_info,attr,optional"`
}

// Systemd are the settings of the systemd collector.
type Systemd struct {
	// Whether to expose the number of restarts of services.
	EnableRestarts bool `alloy:"enable_restarts,attr,optional"`
	// Whether to expose the start time of units.
	StartTime bool `alloy:"start_time,attr,optional"`
	// Whether to expose the number of tasks of units and their limits.
	TaskMetrics bool `alloy:"task_metrics,attr,optional"`
	// Regular expression of units to leave out.
	UnitExclude string `alloy:"unit_exclude,attr,optional"`
	// Regular expression of units to take.
	UnitInclude string `alloy:"unit_include,attr,optional"`
}

// Tapestats are the settings of the tapestats collector.
type Tapestats struct {
	// Regular expression of devices to leave out.
	IgnoredDevices string `alloy:"ignored_devices,attr,optional"`
}

// Textfile are the settings of the textfile collector.
type Textfile struct {
	// Directory, or a pattern of directories, with *.prom files to expose.
	Directory string `alloy:"directory,attr,optional"`
}

// Vmstat are the settings of the vmstat collector.
type Vmstat struct {
	// Regular expression of the fields of /proc/vmstat to expose.
	Fields string `alloy:"fields,attr,optional"`
}

// SetToDefault sets the defaults of Alloy, some of which differ from those of
// node_exporter.
func (a *Arguments) SetToDefault() {
	*a = Arguments{
		ProcFSPath: "/proc", SysFSPath: "/sys", RootFSPath: "/", UdevDataPath: "/run/udev/data",
		Disk:    Disk{DeviceExclude: `^(ram|loop|fd|(h|s|v|xv)d[a-z]|nvme\d+n\d+p)\d+$`},
		Ethtool: Ethtool{MetricsInclude: ".*"},
		Filesystem: Filesystem{
			FSTypesExclude:     "^(autofs|binfmt_misc|bpf|cgroup2?|configfs|debugfs|devpts|devtmpfs|fusectl|hugetlbfs|iso9660|mqueue|nsfs|overlay|proc|procfs|pstore|rpc_pipefs|securityfs|selinuxfs|squashfs|sysfs|tracefs)$",
			MountPointsExclude: "^/(dev|proc|run/credentials/.+|sys|var/lib/docker/.+)($|/)",
			MountTimeout:       5 * time.Second,
		},
		NTP: NTP{
			IPTTL: 1, LocalOffsetTolerance: time.Millisecond, MaxDistance: 3466080 * time.Microsecond,
			ProtocolVersion: 4, Server: "127.0.0.1",
		},
		Netclass:    Netclass{IgnoredDevices: "^$"},
		Netstat:     Netstat{Fields: "^(.*_(InErrors|InErrs)|Ip_Forwarding|Ip(6|Ext)_(InOctets|OutOctets)|Icmp6?_(InMsgs|OutMsgs)|TcpExt_(Listen.*|Syncookies.*|TCPSynRetrans|TCPTimeouts)|Tcp_(ActiveOpens|InSegs|OutSegs|OutRsts|PassiveOpens|RetransSegs|CurrEstab)|Udp6?_(InDatagrams|OutDatagrams|NoPorts|RcvbufErrors|SndbufErrors))$"},
		Powersupply: Powersupply{IgnoredSupplies: "^$"},
		Runit:       Runit{ServiceDir: "/etc/service"},
		Systemd:     Systemd{UnitExclude: `.+\.(automount|device|mount|scope|slice)`, UnitInclude: ".+"},
		Tapestats:   Tapestats{IgnoredDevices: "^$"},
		Vmstat:      Vmstat{Fields: "^(oom_kill|pgpg|pswp|pg.*fault).*"},
	}
}

// Validate returns all errors in the arguments, joined.
func (a *Arguments) Validate() error {
	var errs []error
	patterns := map[string]string{ // node_exporter panics on invalid expressions
		"arp.device_exclude": a.ARP.DeviceExclude, "arp.device_include": a.ARP.DeviceInclude,
		"cpu.bugs_include": a.CPU.BugsInclude, "cpu.flags_include": a.CPU.FlagsInclude,
		"disk.device_exclude": a.Disk.DeviceExclude, "disk.device_include": a.Disk.DeviceInclude,
		"ethtool.device_exclude": a.Ethtool.DeviceExclude, "ethtool.device_include": a.Ethtool.DeviceInclude,
		"ethtool.metrics_include":     a.Ethtool.MetricsInclude,
		"filesystem.fs_types_exclude": a.Filesystem.FSTypesExclude, "filesystem.mount_points_exclude": a.Filesystem.MountPointsExclude,
		"hwmon.chip_exclude": a.Hwmon.ChipExclude, "hwmon.chip_include": a.Hwmon.ChipInclude,
		"netclass.ignored_devices": a.Netclass.IgnoredDevices,
		"netdev.device_exclude":    a.Netdev.DeviceExclude, "netdev.device_include": a.Netdev.DeviceInclude,
		"netstat.fields": a.Netstat.Fields, "powersupply.ignored_supplies": a.Powersupply.IgnoredSupplies,
		"systemd.unit_exclude": a.Systemd.UnitExclude, "systemd.unit_include": a.Systemd.UnitInclude,
		"tapestats.ignored_devices": a.Tapestats.IgnoredDevices, "vmstat.fields": a.Vmstat.Fields,
	}
	for _, name := range slices.Sorted(maps.Keys(patterns)) {
		if _, err := regexp.Compile("^(?:" + patterns[name] + ")$"); err != nil {
			errs = append(errs, fmt.Errorf("%s is not a regular expression: %w", name, err))
		}
	}
	for _, d := range []struct{ block, what, exclude, include string }{
		{"arp", "device", a.ARP.DeviceExclude, a.ARP.DeviceInclude},
		{"ethtool", "device", a.Ethtool.DeviceExclude, a.Ethtool.DeviceInclude},
		{"hwmon", "chip", a.Hwmon.ChipExclude, a.Hwmon.ChipInclude},
		{"netdev", "device", a.Netdev.DeviceExclude, a.Netdev.DeviceInclude},
	} {
		if d.exclude != "" && d.include != "" {
			errs = append(errs, fmt.Errorf("%s: at most one of %s_exclude and %[2]s_include may be set", d.block, d.what))
		}
	}
	if a.Filesystem.MountTimeout <= 0 {
		errs = append(errs, fmt.Errorf("filesystem.mount_timeout is %s, must be greater than 0", a.Filesystem.MountTimeout))
	}
	return errors.Join(errs...)
}
