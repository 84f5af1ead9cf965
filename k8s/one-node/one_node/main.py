"""The command line.

cluster build                       install and build what `up` needs
cluster up | down [--delete]        start it, or stop (and forget) it
cluster status | env                one screen; or eval "$(cluster env)"
cluster base-image                  a stand-in for python:3.13-slim-trixie
cluster image-build DIR --tag NAME  build a Dockerfile without a registry
cluster load NAME...                give built images to the cluster
"""

import argparse
import signal
import sys
from pathlib import Path

from one_node import lifecycle
from one_node.build import build
from one_node.commands import ClusterError
from one_node.images import build_base_image, build_image, has_image, load_image
from one_node.names import BASE_IMAGE, BIN, STATE


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="cluster", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--dir",
        type=lambda path: Path(path).resolve(),
        default=STATE,
        help="where all state of the cluster is (default: %(default)s)",
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name in ("build", "up", "status", "env"):
        commands.add_parser(name)
    commands.add_parser("down").add_argument("--delete", action="store_true", help="forget its objects and images too")
    commands.add_parser("load").add_argument("names", nargs="+", metavar="NAME")
    base = commands.add_parser("base-image")
    base.add_argument("--if-missing", action="store_true", help="do nothing where buildah has that image")
    image = commands.add_parser("image-build")
    image.add_argument("folder", metavar="DIR", type=Path)
    image.add_argument("--tag", metavar="NAME", required=True)
    image.add_argument("--target", metavar="STAGE")
    image.add_argument("--file", help="the Dockerfile (default: DIR/Dockerfile)")
    image.add_argument("--build-arg", action="append", default=[], metavar="KEY=VALUE")
    return parser


def _image_options(args: argparse.Namespace) -> list[str]:
    options = [f"--build-arg={argument}" for argument in args.build_arg]
    return options + [f"--{key}={value}" for key, value in (("target", args.target), ("file", args.file)) if value]


def _run(args: argparse.Namespace) -> int:
    match args.command:
        case "build":
            build()
        case "up":
            lifecycle.up(args.dir)
        case "down":
            lifecycle.down(args.dir, delete=args.delete)
        case "status":
            return 0 if lifecycle.status(args.dir) else 1
        case "env":
            print(f"export KUBECONFIG={args.dir}/kubeconfig PATH={BIN}:$PATH")
        case "base-image":
            if not (args.if_missing and has_image(BASE_IMAGE)):
                build_base_image()
        case "image-build":
            build_image(args.folder, args.tag, *_image_options(args))
        case "load":
            for name in args.names:
                load_image(args.dir, name)
    return 0


def main() -> int:
    """Run one command; return the exit code, after a sentence on stderr where it is not 0."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    args = _parser().parse_args()
    try:
        return _run(args)
    except ClusterError as error:
        print(f"cluster: error: {error}", file=sys.stderr)
        return 1
