"""The Go program of the S3 server for development: versitygw as a library, with files as its only backend.

CHANGE     settings of the S3 server that is compiled
WHY        versitygw's own program has backends for Azure and others, which are a third of its compilation, and two
           thirds of its size (decision 0164).
INVARIANT  keys come from the environment; values that versitygw's own program has as defaults are the same here.
"""

from __future__ import annotations

GO_MOD = """module tablestore/s3server

go 1.25.0

require github.com/versity/versitygw v{version}
"""

MAIN_GO = """package main

import (
	"context"
	"flag"
	"log"
	"os"
	"os/signal"
	"syscall"

	"github.com/versity/versitygw/backend/meta"
	"github.com/versity/versitygw/backend/posix"
	"github.com/versity/versitygw/embedgw"
)

func main() {
	address := flag.String("address", "", "host and port to listen on")
	region := flag.String("region", "us-east-1", "name of the region")
	metadata := flag.String("metadata", "", "folder of ETags and headers")
	versions := flag.String("versions", "", "folder of old versions; without it none are kept")
	users := flag.String("users", "", "folder of users; without it there is only root")
	flag.Parse()
	stopped, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	stored, err := meta.NewSideCar(*metadata)
	if err != nil {
		log.Fatal(err)
	}
	files, err := posix.New(flag.Arg(0), stored, posix.PosixOpts{
		SideCarDir:          *metadata,
		VersioningDir:       *versions,
		Concurrency:         5000,
		IOBufferSize:        1 << 20,
		CopyObjectThreshold: 5 << 30,
	})
	if err != nil {
		log.Fatal(err)
	}
	err = embedgw.RunVersityGW(stopped, files, &embedgw.Config{
		RootUserAccess:    os.Getenv("ROOT_ACCESS_KEY"),
		RootUserSecret:    os.Getenv("ROOT_SECRET_KEY"),
		Region:            *region,
		Ports:             []string{*address},
		MaxConnections:    250000,
		MaxRequests:       100000,
		MultipartMaxParts: 10000,
		Quiet:             true,
		KeepAlive:         true,
		IAMDir:            *users,
		IAMCacheDisable:   true,
	})
	if err != nil {
		log.Fatal(err)
	}
}
"""
