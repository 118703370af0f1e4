"""`partita acls`: who may do what, in the words of kafka-acls."""

from __future__ import annotations

from collections.abc import Callable
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, TypeVar

import click

from partita.cli.address import Address, address_options
from partita.cli.connecting import connected, json_option, yes_option
from partita.cli.terminal import complain, confirm, print_json, print_table, say
from partita.plurals import count

if TYPE_CHECKING:
    from partita.security.rights.acls import AclBinding, AclFilter, Operation, ResourceType

F = TypeVar("F", bound=Callable[..., Any])
_RESOURCES = ("topic", "group", "transactional_id")


@click.group()
def acls() -> None:
    """List, add and remove ACLs: who may do what."""


def resource_options(command: F) -> F:
    """Add the options that name resources."""
    for option in (
        click.option("--prefix", is_flag=True, help="The names are prefixes."),
        click.option("--cluster", is_flag=True, help="The cluster itself."),
        click.option("--transactional-id", multiple=True, metavar="ID", help="A transactional id, or *."),
        click.option("--group", multiple=True, metavar="NAME", help="A group, or *."),
        click.option("--topic", multiple=True, metavar="NAME", help="A topic, or *."),
    ):
        command = option(command)
    return command


def entry_options(command: F) -> F:
    """Add the options that say who may do what, and from where."""
    for option in (
        click.option("--host", multiple=True, metavar="ADDRESS", help="From this address only."),
        click.option(
            "--producer", is_flag=True, help="WRITE, DESCRIBE, CREATE on the topics; WRITE, DESCRIBE on the ids."
        ),
        click.option("--consumer", is_flag=True, help="READ, DESCRIBE on the topics; READ on the groups."),
        click.option("--operation", multiple=True, metavar="NAME", help="Such as read or describe-configs; else all."),
        click.option("--deny", multiple=True, metavar="PRINCIPAL", help="Who may not, such as User:alice."),
        click.option(
            "--allow", "--principal", multiple=True, metavar="PRINCIPAL", help="Who may, such as User:alice or User:*."
        ),
    ):
        command = option(command)
    return command


@acls.command("list")
@address_options
@resource_options
@click.option("--principal", metavar="PRINCIPAL", help="Only what names this principal, such as User:alice.")
@click.option("--match", is_flag=True, help="Also ACLs on * and on prefixes that apply to the names.")
@json_option
def list_(bootstrap: Address, principal: str | None, match: bool, as_json: bool, **resources: Any) -> None:
    """Show the ACLs of the cluster, or those about some resources."""
    from partita.security.rights.acls import AclFilter, PatternType

    pattern = PatternType.MATCH if match else PatternType.PREFIXED if resources["prefix"] else PatternType.ANY
    filters = [AclFilter(kind, name, pattern, principal) for kind, name in _named(resources)]
    with connected(bootstrap) as admin:
        wanted = filters or [AclFilter(pattern_type=pattern, principal=principal)]
        found = dict.fromkeys(acl for each in wanted for acl in admin.describe_acls(each))
    if as_json:
        print_json(list(found))
    elif not found:
        say("no ACLs")
    else:
        _print(list(found))


@acls.command()
@click.argument("lines", nargs=-1, metavar="[ACL]...")
@address_options
@entry_options
@resource_options
def add(bootstrap: Address, lines: tuple[str, ...], **given: Any) -> None:
    """Add ACLs: by options, or each ACL as one line such as "allow User:alice read,describe topic orders-*"."""
    wanted = _bindings(lines, given)
    for host in sorted({acl.host for acl in wanted} - {"*"}):
        if not _is_address(host):
            complain(f"host {host} is no address: this rule will never match")
    with connected(bootstrap) as admin:
        admin.create_acls(*wanted)
    _print(wanted)


@acls.command()
@click.argument("lines", nargs=-1, metavar="[ACL]...")
@address_options
@entry_options
@resource_options
@yes_option
def remove(bootstrap: Address, lines: tuple[str, ...], yes: bool, **given: Any) -> None:
    """Remove ACLs, named as for add. Without a principal everything about the resources is removed."""
    with connected(bootstrap) as admin:
        wanted: list[AclBinding | AclFilter] = []
        if lines or given["allow"] or given["deny"]:
            wanted += _bindings(lines, given)
        else:
            wanted += _about(given)
        confirm("Remove these ACLs?", yes=yes)
        removed = admin.delete_acls(*wanted)
    if removed:
        _print(removed)
    say(f"removed {count(len(removed), 'ACL')}")


def _about(given: dict[str, Any]) -> list[AclFilter]:
    from partita.security.rights.acls import AclFilter, PatternType

    pattern = PatternType.PREFIXED if given["prefix"] else PatternType.LITERAL
    named = _named(given)
    if not named:
        raise click.UsageError("which ACLs? name a principal, a resource, or give ACLs as lines")
    return [AclFilter(kind, name, pattern) for kind, name in named]


def _named(given: dict[str, Any]) -> list[tuple[ResourceType, str]]:
    from partita.security.rights.acls import CLUSTER_NAME, ResourceType

    named = [(ResourceType[option.upper()], name) for option in _RESOURCES for name in given[option]]
    return [*named, (ResourceType.CLUSTER, CLUSTER_NAME)] if given["cluster"] else named


def _bindings(lines: tuple[str, ...], given: dict[str, Any]) -> list[AclBinding]:
    from partita.admin.acls import bindings
    from partita.security.rights.acl_text import AclTextError
    from partita.security.rights.acls import AclBinding, PatternType, Permission

    try:
        found = bindings(lines)
        rights = _rights(given)
    except AclTextError as error:
        raise click.UsageError(str(error)) from None
    who = [(Permission.ALLOW, principal) for principal in given["allow"]]
    who += [(Permission.DENY, principal) for principal in given["deny"]]
    if (rights and not who) or (who and not rights) or not (found or rights):
        raise click.UsageError(
            "say who (--allow or --deny) and which resource (--topic, --group, --transactional-id or --cluster), "
            'or give ACLs as lines such as "allow User:alice read topic orders"'
        )
    pattern = PatternType.PREFIXED if given["prefix"] else PatternType.LITERAL
    for kind, name, operation in rights:
        own = PatternType.LITERAL if kind.name == "CLUSTER" or name == "*" else pattern
        found += [
            AclBinding(kind, name, principal, operation, permission, own, host)
            for permission, principal in who
            for host in given["host"] or ("*",)
        ]
    return list(dict.fromkeys(found))


def _rights(given: dict[str, Any]) -> list[tuple[ResourceType, str, Operation]]:
    """(type, name, operation) of every right that options and roles name. Raises AclTextError."""
    from partita.security.rights.acl_text import word
    from partita.security.rights.acls import Operation, ResourceType

    roles: dict[ResourceType, list[Operation]] = {}
    if given["producer"]:
        roles[ResourceType.TOPIC] = [Operation.WRITE, Operation.DESCRIBE, Operation.CREATE]
        roles[ResourceType.TRANSACTIONAL_ID] = [Operation.WRITE, Operation.DESCRIBE]
    if given["consumer"]:
        roles[ResourceType.TOPIC] = [*roles.get(ResourceType.TOPIC, []), Operation.READ, Operation.DESCRIBE]
        roles[ResourceType.GROUP] = [Operation.READ]
    chosen = [word(Operation, name) for name in given["operation"]]
    if roles and chosen:
        raise click.UsageError("--producer and --consumer name the operations; leave --operation out")
    return [
        (kind, name, operation)
        for kind, name in _named(given)
        for operation in (roles.get(kind, []) if roles else chosen or [Operation.ALL])
    ]


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def _print(found: list[AclBinding]) -> None:
    columns = ["principal", "permission", "operation", "resource", "name", "pattern", "host"]
    print_table(
        columns,
        [
            (
                acl.principal,
                acl.permission.name,
                acl.operation.name,
                acl.resource_type.name,
                acl.resource_name,
                acl.pattern_type.name,
                acl.host,
            )
            for acl in found
        ],
    )
