// Package execution holds which agents this boot of the backend drives, and the
// guards by which a recovery pass keeps launches away from sessions that it has
// not settled yet. It lives in memory only: a restart begins with a closed store
// that refuses launches until a pass has taken its guards.
//
// A guard belongs to a numbered pass. The newest pass takes over the guards of
// older ones and fences them: whatever an older pass, or one that was closed,
// still tries to track is refused.
package execution
