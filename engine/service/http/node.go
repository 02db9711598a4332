package http

import "github.com/weir-run/weir/engine/service"

// find returns a component or a service by its ID.
func find(host service.Host, id string) (service.Info, bool) {
	for _, nodes := range [][]service.Info{host.ListComponents(), host.Overview().Services} {
		for _, i := range nodes {
			if i.ID == id {
				return i, true
			}
		}
	}
	return service.Info{}, false
}
