package invalidation

// Reason is why readiness ended, in one word. A Reason is an error, so that
// errors.Is(err, invalidation.Forbidden) answers the question directly. Policies
// of other programs may use reasons of their own.
type Reason string

// The reasons for which SafeStore revokes.
const (
	Stale        Reason = "Stale"        // the newest proof is older than the bound, or nothing was heard from the server for too long
	Stuck        Reason = "Stuck"        // the watch is open but does not bring what the server has, or nothing can show that it does
	Diverged     Reason = "Diverged"     // an audit found objects that differ from the server's, and the watch did not bring the difference
	Relist       Reason = "Relist"       // the whole set is being listed again, after a 410 or because nothing else can bring it up to date
	Rewound      Reason = "Rewound"      // the server shows a lower resource version than before: restored from a backup, or another server
	Unauthorized Reason = "Unauthorized" // 401: the server does not know who asks
	Forbidden    Reason = "Forbidden"    // 403: the right to list or watch is missing or withdrawn
	ResourceGone Reason = "ResourceGone" // 404: the server does not serve the resource, for example its CRD was deleted
	Unsupported  Reason = "Unsupported"  // 405, or 422 to a plain watch: the server does not list or watch the resource
	BadData      Reason = "BadData"      // something received cannot be decoded or applied, so the set cannot be complete
	TooLarge     Reason = "TooLarge"     // the set is larger than the program allows
	Requested    Reason = "Requested"    // the program asked for it
	Closed       Reason = "Closed"       // the store's context ended
)

// Error returns the reason's name.
func (r Reason) Error() string { return string(r) }
