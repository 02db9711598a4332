// Package discovery runs Prometheus's own service discovery as a component that
// exports `targets`. It is not a component: those below it, such as
// natives/discovery/http, turn their arguments into Prometheus's Config and
// leave the rest to Component.
//
// What is found, and with which labels, is Prometheus's. What becomes of it is
// ours: groups are merged by source into one list (Set), in an order that
// depends on nothing but the targets, so that finding the same again exports
// nothing; a burst of updates is exported at most every 250 ms, the first one
// at once. Known targets stay exported through failures, which are in the
// health, and through changes of arguments, until the new discovery has
// answered. A target that stays is the same map from export to export, which
// makes comparing cheap for everybody downstream; so nobody writes to it.
package discovery
