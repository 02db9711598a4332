package watch

import "syscall"

// silentTypes are file systems that do not tell of all changes: of a network,
// what is changed on another machine; those whose files are made when they are
// read; and FUSE, which may be anything, such as a container's mount of a
// directory of the host.
//
// Source: https://github.com/torvalds/linux/blob/master/include/uapi/linux/magic.h
var silentTypes = map[uint32]string{
	0x6969:     "nfs",
	0x517b:     "smb",
	0xfe534d42: "smb2",
	0xff534d42: "cifs",
	0x5346414f: "afs",
	0x73757245: "coda",
	0x00c36400: "ceph",
	0x0bd00bd0: "lustre",
	0x01161970: "gfs2",
	0x7461636f: "ocfs2",
	0x01021997: "9p",
	0x65735546: "fuse",
	0x786f4256: "vboxsf",
	0x9fa0:     "proc",
	0x62656572: "sysfs",
}

// silentFileSystem returns the name of the file system of dir if it does not tell of all
// changes, "" if it does or is not known.
func silentFileSystem(dir string) string {
	var st syscall.Statfs_t
	if syscall.Statfs(dir, &st) != nil {
		return ""
	}
	return silentTypes[uint32(st.Type)]
}
