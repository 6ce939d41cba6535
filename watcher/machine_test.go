package watcher

import (
	"errors"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

var errSome = errors.New("some trouble on the way")

var configMaps = schema.GroupResource{Resource: "configmaps"}
