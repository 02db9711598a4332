package bench

import "runtime"

// usage is what a process has used since its start, as the system says.
type usage struct {
	CPU  float64 // seconds, user and system
	Peak int64   // bytes, the most that was ever resident
	RSS  int64   // bytes, resident now
	Anon int64   // bytes, of those that are no file's: heap and stacks
}

// Machine is what a measurement was made on.
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
