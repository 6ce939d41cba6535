// Package health answers the questions that a kubelet and a load balancer ask a
// program about its stores, in the format of kube-apiserver's own endpoints.
//
//	ready := health.Ready(20*time.Second, pods, nodes)
//	mux.Handle("/readyz", ready)
//	mux.Handle("/readyz/{check...}", ready)
//	live := health.Live(15*time.Minute, pods, nodes)
//	mux.Handle("/livez", live)
//
//	manager.AddReadyzCheck("stores", ready.Check) // controller-runtime
//
// The two are different questions (C57). [Ready] asks whether this replica should
// get requests now. [Live] asks whether it should be killed, because nothing else
// helps. Both answer from memory: they wait for nothing and ask no server, so that
// an API server that is away cannot make a probe time out.
//
// # Does a webhook server need readiness at all?
//
// What keeps a webhook server from deciding on what is no longer true is that its
// reads fail, whatever its probe says: the handler turns the error into a 503, and
// the failurePolicy of its configuration decides. Readiness comes on top. It takes
// requests away from a replica whose neighbours can answer them:
//
//   - Where only this replica is in trouble (its watch is stuck, its node is cut
//     off, its proxy broken), let it be unready at once, or after a short grace.
//     The others serve.
//   - Where all replicas are in trouble together (the API server is away or
//     restarts, a right was withdrawn, the CRD was deleted), being unready does
//     harm: see below. A replica cannot tell the two apart, which is what the grace
//     is for.
//   - Where an answer from old data is better than none, as for defaults that
//     rarely change, read with [safestore.Store.Stale], check the age that it
//     returns, and use neither of the checks for that store: a restart would throw
//     the old data away. Where the answer guards something (names that are unique,
//     quotas, who may do what), let the read fail.
//
// # All replicas at once
//
// A Service whose endpoints are all unready has no endpoint: requests are refused
// by the network, before any code of yours could have answered one (C3). For a
// webhook with failurePolicy Fail that means that the API server refuses the
// objects which it matches, also those that are needed for the repair: the
// RoleBinding that was deleted, the pods of the webhook server itself. So
//
//   - leave what a repair needs out of the webhook's rules, with
//     namespaceSelector, objectSelector or matchConditions;
//   - give readiness a grace that covers what happens to all replicas in everyday
//     life: the restart of an API server, and the relist after it. Twenty seconds to
//     a minute is usual. During the grace reads still fail, one by one, with an
//     answer that says why; nothing is answered from data that is not vouched for;
//   - let a store that shows things to people, and guards nothing, out of the check.
//
// The grace is only for stores that have been ready before. A new replica is
// unready until its first complete set, so that a rollout stops before it has
// replaced the replicas that work. The grace is not jittered: in an outage that
// outlasts it, spread over seconds is as bad as at once.
//
// # What a restart can cure
//
// Liveness fails when a store has not been ready for longer than its limit, for a
// reason that a restart could cure.
//
//	Stale, Stuck            yes  new connections, name resolution and proxies' state
//	Unauthorized            yes  credentials that the program read when it started
//	Relist, Rewound,        yes  the list that would cure it has not come for all the
//	Diverged, Requested          time, so it is as with those above
//	none: never ready       yes  as those
//	of a policy of yours    yes
//	Forbidden               no   the right is missing after a restart as well
//	ResourceGone            no   so is the resource
//	Unsupported             no   so is a server that does it
//	TooLarge, BadData       no   the set and the object are what they are
//	Closed, Run not called  no   the program has ended it, or waits to be leader
//
// For as long as a server keeps refusing, the limit does not run; it runs from when
// a probe first finds that something else is in the way. Up to a tenth is added to
// it, at random for each [Check], so that replicas are not all killed at once.
//
// Give it a limit well above the outages that are to be survived, and above the
// time that the first list takes: ten minutes are little. A killed replica lists
// everything again, which is the last thing that an API server needs while it
// comes back.
//
// # Who may read it
//
// Probes are often reachable without authentication, and the text of an API error
// names users, namespaces and hosts. So the pages name stores, and reasons in one
// word, and no more, unless [Check].Reasons is set. Package debug has the rest. No
// object and no key is ever shown.
//
// # Concurrency
//
// A [Check] may be used from any goroutine, and starts none. A probe takes the
// locks of the stores for as long as a status is copied: they are never held while
// the server, a reader, a hook or a log is waited for.
package health
