package store

// SelectPermissionEvents is the statement whose plan a test looks at.
const SelectPermissionEvents = selectPermissionEvents
