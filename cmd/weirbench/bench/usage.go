package bench

import "runtime"

// usage contains the resources that a process has used since its start, according
// to the operating system.
type usage struct {
	CPU  float64 // seconds, user and system
	Peak int64   // bytes, peak resident memory
	RSS  int64   // bytes, current resident memory
	Anon int64   // resident bytes that do not belong to a file: heap and stacks
}

// Machine describes the machine of a measurement.
type Machine struct {
	OS     string `json:"os"`
	Arch   string `json:"arch"`
	Cores  int    `json:"cores"`
	CPU    string `json:"cpu,omitempty"`
	Memory int64  `json:"memory_bytes,omitempty"`
	Kernel string `json:"kernel,omitempty"`
}

// ThisMachine describes the machine.
func ThisMachine() Machine {
	m := Machine{OS: runtime.GOOS, Arch: runtime.GOARCH, Cores: runtime.NumCPU()}
	describeMachine(&m)
	return m
}
